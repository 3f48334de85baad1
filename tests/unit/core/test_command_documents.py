"""Documents of type command, by themselves and as steps of a pipeline, become jobs with a command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import Reading, read_job
from parallelrun_core.spec import PipelineSpec

JOB: dict[str, Any] = {
    "$schema": "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json",
    "type": "command",
    "name": "train-1",
    "display_name": "Train it",
    "experiment_name": "trials",
    "description": "a trial",
    "tags": {"a": 1},
    "code": "src",
    "command": "python train.py --data ${{inputs.data}} --rate ${{inputs.rate}} $[[--more ${{inputs.more}}]]",
    "inputs": {
        "data": {"type": "uri_folder", "path": "data", "mode": "download"},
        "rate": 0.1,
        "word": "hello",
        "wanted": True,
        "count": {"type": "integer", "default": 3},
        "more": {"type": "string", "optional": True},
    },
    "outputs": {"model": {"type": "mlflow_model", "mode": "rw_mount"}, "table": {"type": "uri_file"}, "rest": None},
    "environment": {"image": "some/image", "conda_file": {"dependencies": ["six"]}},
    "environment_variables": {"MINE": "1"},
    "resources": {"instance_count": 1, "instance_type": "big", "shm_size": "2g"},
    "limits": {"timeout": 120},
    "distribution": {"type": "PyTorch", "process_count_per_instance": 1},
    "services": {"shell": {"type": "ssh"}},
    "queue_settings": {"job_tier": "spot"},
    "compute": "azureml:cluster",
    "identity": {"type": "user_identity"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("src", "data"):
        (tmp_path / name).mkdir()
    return tmp_path


def read(folder: Path, document: dict[str, Any]) -> Reading:
    file = folder / "job.yml"
    file.write_text(yaml.safe_dump(document))
    return read_job(yaml.safe_load(file.read_text()), folder=folder)


def problems(folder: Path, document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        read(folder, document)
    return {problem.pointer: str(problem) for problem in caught.value.problems}


def test_a_command_job_by_itself_is_read_with_all_of_its_fields(folder: Path) -> None:
    reading = read(folder, JOB)
    spec = reading.job
    assert (spec.name, spec.description, spec.tags) == ("Train it", "a trial", {"a": "1"})
    assert spec.code == str(folder / "src")
    assert spec.shell_command() == f"python train.py --data {folder / 'data'} --rate 0.1 "
    values = {name: getattr(given, "value", None) for name, given in spec.inputs.items()}
    assert values == {"data": None, "rate": 0.1, "word": "hello", "wanted": True, "count": 3}
    assert {name: given.type for name, given in spec.outputs.items()} == {
        "model": "uri_folder", "table": "uri_file", "rest": "uri_folder",
    }  # fmt: skip
    assert spec.environment.requirements == ["six"]
    assert spec.environment_variables["MINE"] == "1"
    assert (spec.environment_variables["RANK"], spec.environment_variables["WORLD_SIZE"]) == ("0", "1")
    assert (spec.run_invocation_timeout, spec.run_max_try, spec.rank_mini_batch_count) == (120, 1, 1)
    noted = {note.pointer for note in reading.notes}
    assert noted >= {
        "/resources/instance_type", "/resources/shm_size", "/distribution", "/services", "/queue_settings", "/compute",
        "/identity", "/environment/image",
    }  # fmt: skip


def test_a_minimal_command_job_needs_a_command_and_an_environment(folder: Path) -> None:
    spec = read(folder, {"type": "Command", "command": "echo", "environment": "azureml:any@latest"}).job
    assert (spec.command, spec.code, spec.inputs, spec.run_invocation_timeout) == ("echo", "", {}, 259_200)
    assert problems(folder, {"type": "command"}).keys() == {"/command", "/environment"}


@pytest.mark.parametrize(
    "changes, pointer, why",
    [
        ({"command": ["a"]}, "/command", "it is one string"),
        ({"command": "${{inputs.nothing}}"}, "/command", "not one of the inputs"),
        ({"command": "${{parent.inputs.x}}"}, "/command", "neither"),
        ({"limits": {"timeout": 0}}, "/limits/timeout", "greater than 0"),
        ({"limits": {"timeout": 300_000}}, "/limits/timeout", "less than or equal to 259200"),
        ({"limits": {"max_trials": 3}}, "/limits/max_trials", "unknown field"),
        ({"resources": {"instance_count": 2}}, "/resources/instance_count", "a command runs on one node"),
        ({"distribution": {"type": "mpi", "process_count_per_instance": 4}}, "/distribution/process_count_per_instance",
         "asks for 4"),
        ({"distribution": {"type": "tensorflow", "worker_count": 2}}, "/distribution/worker_count", "one process"),
        ({"distribution": {"type": "horovod"}}, "/distribution/type", "pytorch"),
        ({"inputs": {"t": {"type": "mltable", "path": "data", "mode": "eval_mount"}}}, "/inputs/t/mode", "ro_mount"),
        ({"task": {}}, "/task", "it is a field of parallel jobs"),
        ({"environment_variables": {"A": 1}}, "/environment_variables/A", "must be a string"),
        ({"mini_batch_size": "1"}, "/mini_batch_size", "unknown field"),
    ],
)  # fmt: skip
def test_what_a_command_job_cannot_be_is_refused_with_its_place(
    folder: Path, changes: dict[str, Any], pointer: str, why: str
) -> None:
    found = problems(folder, {"type": "command", "command": "true", "environment": "azureml:any@latest", **changes})
    assert list(found) == [pointer]
    assert why in found[pointer]


def test_several_nodes_are_refused_once_for_each_command(folder: Path) -> None:
    spread = {"resources": {"instance_count": 2}, "distribution": {"type": "pytorch", "process_count_per_instance": 2}}
    document = {"type": "command", "command": "true", "environment": "azureml:any@latest", **spread}
    (told,) = problems(folder, document).values()
    assert "a command runs on one node, as one process" in told


def test_a_component_gives_a_step_what_it_does_not_say_itself(folder: Path) -> None:
    component = {
        "type": "command", "name": "copy", "version": 1, "command": "cp -r ${{inputs.a}} ${{outputs.b}} ${{inputs.n}}",
        "inputs": {"a": {"type": "uri_folder"}, "n": {"type": "integer", "default": 2, "max": 5}},
        "outputs": {"b": {"type": "uri_folder"}}, "environment": "azureml:any@latest", "code": "../src",
        "limits": {"timeout": 7}, "is_deterministic": False,
    }  # fmt: skip
    (folder / "parts").mkdir()
    (folder / "parts/copy.yml").write_text(yaml.safe_dump(component))
    step = {"type": "command", "component": "parts/copy.yml", "inputs": {"a": "${{parent.inputs.raw}}"}}
    after = {
        "type": "command", "command": "ls ${{inputs.b}}", "environment": "azureml:any@latest",
        "inputs": {"b": "${{parent.jobs.first.outputs.b}}"}, "limits": {"timeout": "${{parent.inputs.seconds}}"},
        "environment_variables": {"A": "1"},
    }  # fmt: skip
    raw = {"type": "uri_folder", "path": "data"}
    reading = read(
        folder,
        {"type": "pipeline", "inputs": {"raw": raw, "seconds": 9}, "jobs": {"first": step, "second": after}},
    )
    assert isinstance(reading.spec, PipelineSpec)
    first, second = reading.spec.steps["first"], reading.spec.steps["second"]
    assert (first.type, second.type, first.is_deterministic) == ("command", "command", False)
    job = first.job_spec({})
    assert job.shell_command({"b": "/out"}) == f"cp -r {folder / 'data'} /out 2"
    assert (Path(job.code).resolve(), job.run_invocation_timeout) == (folder / "src", 7)
    assert second.needs() == {"first"}
    job = second.job_spec({"b": "/made/b"})
    assert (job.shell_command(), job.run_invocation_timeout) == ("ls /made/b", 9)


def test_a_component_by_itself_runs_with_its_defaults(folder: Path) -> None:
    component = {
        "type": "command", "name": "copy", "version": 1, "command": "echo ${{inputs.n}} $[[${{inputs.m}}]]",
        "inputs": {"n": {"type": "integer", "default": 2}, "m": {"type": "string", "optional": True}},
        "environment": "azureml:any@latest",
    }  # fmt: skip
    assert read(folder, component).job.shell_command() == "echo 2 "
