"""Jobs as Python objects mean the same as job files."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from parallelrun import (
    BuildContext,
    Environment,
    Input,
    InvalidInput,
    Output,
    ParallelRunConfig,
    ParallelRunStep,
    PipelineParameter,
    RunFunction,
    parallel_run_function,
)
from parallelrun.builders.parts import NOT_OF_JOBS
from parallelrun.job_file.reading import read_spec
from parallelrun_core.computes.images import BUILD_NOTE
from parallelrun_core.spec import environment as spec_environment
from parallelrun_core.spec import fields as spec_fields
from parallelrun_core.spec.fields import OutputAsset

HERE = Environment(name="here")


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def config(**changes: Any) -> ParallelRunConfig:
    fields: dict[str, Any] = {
        "environment": HERE, "entry_script": "score.py", "source_directory": "src", "error_threshold": 10,
        "output_action": "append_row", "compute_target": "cluster", "node_count": 2,
    }  # fmt: skip
    return ParallelRunConfig(**{**fields, **changes})


def wrong(**changes: Any) -> set[str]:
    with pytest.raises(InvalidInput) as caught:
        config(**changes)
    return {problem.pointer.rpartition("/")[2] for problem in caught.value.problems}


@pytest.mark.parametrize(
    "field, value",
    [
        ("environment", "azureml:x"),
        ("error_threshold", -2),
        ("output_action", "append"),
        ("node_count", 0),
        ("process_count_per_node", 0),
        ("mini_batch_size", "1.5kb"),
        ("run_max_try", 0),
        ("run_invocation_timeout", 0),
        ("append_row_file_name", "a/b"),
        ("allowed_failed_percent", 101),
        ("logging_level", "info"),
        ("entry_script", PipelineParameter("script", "x.py")),
        ("partition_keys", PipelineParameter("keys", "no json")),
        ("partition_keys", PipelineParameter("keys", '"store"')),
        ("partition_keys", "store"),
    ],
)
def test_a_wrong_field_of_a_configuration_is_reported_at_once(field: str, value: object) -> None:
    assert wrong(**{field: value}) == {field}


def test_a_configuration_takes_its_fields_in_the_order_of_v1() -> None:
    given = (
        HERE, "score.py", 10, "append_row", "cluster", 2, 3, "5", "src", "what", "DEBUG", 60, 4, "rows.txt", 5, 6.5,
        None, {"A": "1"},
    )  # fmt: skip
    made = ParallelRunConfig(*given)
    names = [
        "environment", "entry_script", "error_threshold", "output_action", "compute_target", "node_count",
        "process_count_per_node", "mini_batch_size", "source_directory", "description", "logging_level",
        "run_invocation_timeout", "run_max_try", "append_row_file_name", "allowed_failed_count",
        "allowed_failed_percent", "partition_keys", "environment_variables",
    ]  # fmt: skip
    assert {name: getattr(made, name) for name in names} == dict(zip(names, given, strict=True))


def test_a_step_takes_its_arguments_in_the_order_of_v1() -> None:
    made = ParallelRunStep("score", config(), ["a"], "out", ["b"], ["--rows", 5], True)
    assert made.document() == ParallelRunStep(
        name="score", parallel_run_config=config(), inputs=["a"], output="out", side_inputs=["b"],
        arguments=["--rows", 5], allow_reuse=True,
    ).document()  # fmt: skip


def test_keys_that_are_text_are_refused_by_every_form() -> None:
    for wrong_keys in ("store", {"store": 1}, {"store", "brand"}, frozenset({"store"})):
        with pytest.raises(InvalidInput, match="partition_keys"):
            read_spec(function(mini_batch_size=None, partition_keys=wrong_keys)(files="data"))
        with pytest.raises(InvalidInput, match="partition_keys"):
            read_spec({"entry_script": "a.py", "inputs": "data", "partition_keys": wrong_keys})


def test_no_keys_are_refused_by_v1_and_read_as_not_set_by_v2() -> None:
    assert wrong(partition_keys=[], mini_batch_size=None) == {"partition_keys"}
    read = read_spec(function(mini_batch_size="2", partition_keys=[])(files="data"))
    assert (read.job.partition_keys, read.job.mini_batch_size) == ((), 2)


def test_keys_and_a_size_exclude_each_other() -> None:
    assert wrong(partition_keys=["a"], mini_batch_size=5) == {"partition_keys"}


def test_a_step_is_a_job(tmp_path: Path) -> None:
    model = Input(path="model").as_named_input("model")
    step = ParallelRunStep(
        "score-all",
        config(
            mini_batch_size=PipelineParameter("size", "1kb"), run_max_try=PipelineParameter("tries", 4),
            environment=Environment(name="e", pip=["six"]), allowed_failed_count=3,
        ),
        [Input(path="data").as_named_input("images"), "more"],
        output=Output(path="out"),
        side_inputs=[model],
        arguments=["--model", model, "--n", 20, "--limit", PipelineParameter("limit", 0.5)],
    )  # fmt: skip
    spec = read_spec(step).job
    assert (spec.name, spec.code, spec.output) == ("score-all", f"{tmp_path}/src", f"{tmp_path}/out")
    assert spec.data_paths() == [f"{tmp_path}/data", f"{tmp_path}/more"]
    assert spec.argv() == ["--model", f"{tmp_path}/model", "--n", "20", "--limit", "0.5"]
    assert (spec.size.bytes, spec.run_max_try, spec.mini_batch_error_threshold) == (1024, 4, 3)
    assert spec.environment.requirements == ["six"]


def test_builders_reach_what_a_job_that_waits_needs() -> None:
    words = ["--mini_batches_in_flight", 12, "--in_flight", "threads", "--rate_limits", "openai"]
    step = ParallelRunStep("score", config(), ["data"], output=Output(path="out"), arguments=words)
    component = function()
    component.task.program_arguments = " ".join(map(str, words))
    job = component(files="data")
    for spec in (read_spec(step).job, read_spec(job).job):
        assert (spec.mini_batches_in_flight, spec.in_flight, spec.rate_limits) == (12, "threads", ("openai",))


def test_environments_and_inputs_of_both_sdks_have_the_fields_of_a_job_s() -> None:
    of_builders = {field.name for field in fields(Environment)}
    assert of_builders - NOT_OF_JOBS == spec_environment.Environment.model_fields.keys()
    of_job_alone = {"asset", "model"}  # what a name of data or of a model has stood for
    assert {field.name for field in fields(Input)} >= spec_fields.Input.model_fields.keys() - of_job_alone
    given = Input(path="data", transformations=["read_delimited"], hidden_files="skip", on_mismatch="error")
    read = read_spec(ParallelRunStep("score", config(), [given], "out")).job.inputs["input_0"]
    assert isinstance(read, spec_fields.Input)
    assert (read.hidden_files, read.on_mismatch) == ("skip", "error")


def test_a_dockerfile_of_a_step_is_beside_the_script_that_makes_it(tmp_path: Path) -> None:
    environment = Environment(name="e", build=BuildContext(path="docker"))
    step = ParallelRunStep("score", config(environment=environment), ["data"], output=Output(path="out"))
    reading = read_spec(step)
    build = reading.job.environment.build
    assert build is not None
    assert (build.path, build.dockerfile_path) == (f"{tmp_path}/docker", "Dockerfile")
    assert any(note.message == BUILD_NOTE for note in reading.notes)


@pytest.mark.parametrize(
    "changes, where",
    [
        ({"name": "Bad_Name"}, "/name"),
        ({"output": None}, "/output"),
        ({"inputs": "abc"}, "/inputs"),
        ({"inputs": Input(path="abc")}, "/inputs"),
        ({"inputs": Path("abc")}, "/inputs"),
        ({"side_inputs": "abc"}, "/side_inputs"),
        ({"arguments": "--rows 5"}, "/arguments"),
        ({"arguments": ["--mini_batch_size", 5]}, "/arguments/0"),
        ({"inputs": ["a", Input(type="mltable", path="b")]}, "/inputs"),
        ({"side_inputs": [Input(type="mltable", path="b")]}, "/side_inputs/side_input_0/type"),
    ],
)
def test_a_step_is_checked_when_it_is_created(changes: dict[str, Any], where: str) -> None:
    fields: dict[str, Any] = {
        "name": "score", "parallel_run_config": config(), "inputs": ["a"], "output": "out", **changes,
    }  # fmt: skip
    with pytest.raises(InvalidInput) as caught:
        ParallelRunStep(**fields)
    assert where in {problem.pointer for problem in caught.value.problems}


def test_a_configuration_survives_its_file_with_all_of_its_fields(tmp_path: Path) -> None:
    thresholds: dict[str, Any] = {"allowed_failed_count": 3, "allowed_failed_percent": 7.5}
    made = config(partition_keys=("a", "b"), environment=Environment(name="e", pip=["six"]), **thresholds)
    made.save_to_yaml(tmp_path / "config.yml")
    assert set(yaml.safe_load((tmp_path / "config.yml").read_text())) == {"parallel_run_config"}
    loaded = ParallelRunConfig.load_yaml("a workspace", tmp_path / "config.yml")
    assert loaded.document() == made.document()


V1_ENVIRONMENT = {
    "name": "e", "python": {"condaDependencies": {"dependencies": ["python=3.11", {"pip": ["six"]}]}},
    "docker": {"baseImage": "some/image"}, "environmentVariables": {"A": "1"},
}  # fmt: skip


@pytest.mark.parametrize("given, name", [
    ({"environment": V1_ENVIRONMENT}, "e"),
    ({"environment": {"name": "e", "conda_file": "conda_dependencies.yml"}}, "e"),
    ({"environment_name": "e", "environment_dir_path": "."}, "e"),
    ({"environment": "azureml:e@latest"}, "e"),
    ({"environment_name": "e"}, "e"),
    ({"environment_dir_path": "."}, ""),
])  # fmt: skip
def test_a_file_has_the_same_environment_by_the_client_as_by_the_command_line(
    tmp_path: Path, given: dict[str, Any], name: str
) -> None:
    (tmp_path / "conda_dependencies.yml").write_text("dependencies: [python=3.11, {pip: [six]}]")
    document = {name: value for name, value in config().document().items() if name != "environment"}
    file = tmp_path / "config.yml"
    file.write_text(yaml.safe_dump({"parallel_run_config": {**document, **given}, "inputs": ["a"], "output": "out"}))
    expected = read_spec(file).job

    loaded = ParallelRunConfig.load_yaml(workspace=None, path=str(file))
    spec = read_spec(ParallelRunStep("score", loaded, ["a"], output="out")).job
    assert loaded.environment.name == name
    assert spec.environment == expected.environment
    assert spec.environment_variables == expected.environment_variables
    assert ParallelRunConfig.load_yaml(file).document() == loaded.document()
    assert ParallelRunConfig.load_yaml("a workspace", file).document() == loaded.document()


@pytest.mark.parametrize("text", ["", "[]", "parallel_run_config: {no_such_field: 1}", "parallel_run_config: {}"])
def test_a_file_without_a_configuration_is_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yml").write_text(text)
    with pytest.raises(InvalidInput):
        ParallelRunConfig.load_yaml(tmp_path / "config.yml")


def function(**changes: Any) -> Any:
    fields: dict[str, Any] = {
        "name": "score",
        "inputs": {"files": Input(type="uri_folder"), "model": Input(type="uri_folder", optional=True), "limit": 3},
        "outputs": {"scores": Output(type="uri_file")},
        "input_data": "${{inputs.files}}",
        "mini_batch_size": "5",
        "instance_count": 2,
        "retry_settings": {"max_retries": 1, "timeout": 30},
        "task": RunFunction(
            code="./src", entry_script="score.py", environment="azureml:e@latest",
            program_arguments="--limit ${{inputs.limit}} $[[--model ${{inputs.model}}]]",
            append_row_to="${{outputs.scores}}",
        ),
        **changes,
    }  # fmt: skip
    return parallel_run_function(**fields)


def test_a_parallel_run_function_called_with_inputs_is_a_job(tmp_path: Path) -> None:
    component = function()
    job = component(files="data", limit=7)
    job.resources.instance_count = 4
    job.outputs.scores.path = "out.csv"
    spec = read_spec(job).job
    assert (spec.data_paths(), spec.instance_count, spec.run_max_try) == ([f"{tmp_path}/data"], 4, 2)
    assert (spec.argv(), spec.outputs["scores"].path) == (["--limit", "7"], f"{tmp_path}/out.csv")
    assert component.resources.instance_count == 2, "what it was made from stays"
    assert read_spec(component(files=Input(path="data", mode="download"), model="m")).job.argv()[2:] == [
        "--model", f"{tmp_path}/m",
    ]  # fmt: skip


def test_a_job_may_choose_the_size_of_its_mini_batches() -> None:
    assert config(mini_batch_size="auto").mini_batch_size == "auto"
    assert read_spec(function(mini_batch_size="auto")(files="data")).job.size.is_auto


def test_arguments_of_azure_that_have_no_use_here_are_taken(tmp_path: Path) -> None:
    output = Output(type="uri_file", path="out.csv", name="scores", version="1")
    job = function(experiment_name="trial", outputs={"scores": output}, shm_size="2g")(files="data")
    job.set_resources(instance_count=5, instance_type="STANDARD_D2")
    reading = read_spec(job)
    assert (reading.job.instance_count, vars(job.resources)["shm_size"]) == (5, "2g")
    noted = {note.pointer for note in reading.notes}
    assert "/resources/instance_type" in noted
    assert reading.job.outputs["scores"].asset == OutputAsset(name="scores", version="1", type="uri_file")


def test_errors_in_a_parallel_run_function_are_reported() -> None:
    with pytest.raises(InvalidInput, match="no such input"):
        function()(fils="data")
    with pytest.raises(InvalidInput, match="path is required"):
        read_spec(function())
    with pytest.raises(InvalidInput, match="mini_batch_size"):
        read_spec(function(mini_batch_size=5)(files="data"))
    with pytest.raises(TypeError):
        function(no_such_field=1)
    with pytest.raises(AttributeError):
        function().no_such_field = 1
