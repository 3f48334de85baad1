"""What documents of Azure ML mean here: every spelling becomes the one job spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from parallelrun.job_file.reading import read_job_file
from parallelrun_core.azure.environment import read_environment
from parallelrun_core.azure.findings import DocumentLocation, Findings
from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import read_job
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.expressions import UNIQUE_NAME
from parallelrun_core.spec.fields import ValueInput
from tests.conformance.documents import COMPONENT, CONFIG, DELETE, PIPELINE, changed, read, spec_of

STEP = "jobs.score"


def test_a_pipeline_of_one_parallel_step_is_a_job(folder: Path) -> None:
    spec = spec_of(PIPELINE, folder)
    assert (spec.name, spec.code, spec.entry_script) == ("score many", f"{folder}/src", "score.py")
    assert spec.data_paths() == [f"{folder}/data"]
    assert spec.argv() == ["--model", f"{folder}/data"]
    assert dict(spec.input_paths())["model"].mode == "download"
    rows_to = spec.outputs["all_scores"].type
    assert (spec.output_action, spec.append_row_to, rows_to) == ("append_row", "all_scores", "uri_file")
    assert (spec.mini_batch_size, spec.run_max_try, spec.run_invocation_timeout) == (5, 3, 60)
    labels = {f"{STEP}.tags": {"team": "a", "cost": 1}, f"{STEP}.description": "of the step", "tags": {"cost": 2}}
    spec = spec_of(PIPELINE, folder, **labels)
    assert (spec.tags, spec.description) == ({"team": "a", "cost": "2"}, "of the step")


def test_outputs_of_the_only_step_are_called_what_its_pipeline_calls_them(folder: Path) -> None:
    bound, arguments = "${{parent.outputs.ALL_scores}}", f"{STEP}.task.program_arguments"

    def read_with(**outputs: Any) -> JobSpec:
        named = {arguments: "--to ${{ outputs.SCORES }} --more ${{outputs.more}}", f"{STEP}.outputs": outputs}
        return spec_of(PIPELINE, folder, **named)

    spec = read_with(scores=bound, more={"type": "uri_folder"})
    assert (list(spec.outputs), spec.append_row_to) == (["all_scores", "more"], "all_scores")
    assert spec.program_arguments == "--to ${{outputs.all_scores}} --more ${{outputs.more}}"
    spec = read_with(scores=bound, more=None, all_scores={"type": "uri_folder"})
    assert (list(spec.outputs), spec.append_row_to) == (["scores", "more", "all_scores"], "scores"), "the name is taken"
    with pytest.raises(InvalidInput, match="'all_scores' is the output 'scores' of the step already"):
        read_with(scores=bound, more=bound)
    somewhere = {f"{STEP}.outputs": {"scores": None}, "settings.default_datastore": "azureml:ours"}
    noted = {note.pointer: note.message for note in read(changed(PIPELINE, **somewhere), folder).notes}
    assert noted["/outputs/all_scores"] == "no step writes this output"
    assert "an output without a path is in the job's own outputs" in noted["/settings/default_datastore"]


def test_tries_are_one_more_than_retries(folder: Path) -> None:
    spec = spec_of(PIPELINE, folder, **{f"{STEP}.retry_settings": {"max_retries": 0, "timeout": 7}})
    assert (spec.run_max_try, spec.run_invocation_timeout) == (1, 7)
    assert spec_of(PIPELINE, folder, **{f"{STEP}.retry_settings": {"max_retries": 2**31 - 1}}).run_max_try == 2**31


def test_a_task_without_append_row_to_only_counts(folder: Path) -> None:
    assert spec_of(PIPELINE, folder, **{f"{STEP}.task.append_row_to": DELETE}).output_action == "summary_only"


def test_keys_win_over_a_size_and_that_is_said(folder: Path) -> None:
    reading = read(changed(PIPELINE, **{f"{STEP}.partition_keys": ["a", "b"]}), folder)
    assert (reading.job.partition_keys, reading.job.mini_batch_size) == (("a", "b"), None)
    assert any("mini_batch_size is not used" in str(note) for note in reading.notes)


def test_no_keys_are_read_as_not_set_and_that_is_said(folder: Path) -> None:
    reading = read(changed(PIPELINE, **{f"{STEP}.partition_keys": []}), folder)
    assert (reading.job.partition_keys, reading.job.mini_batch_size) == ((), read(PIPELINE, folder).job.mini_batch_size)
    assert any("[] is read as not set" in str(note) for note in reading.notes)


def test_a_binding_may_stand_alone_or_in_a_path_with_its_own_mode(folder: Path) -> None:
    inputs = {"files": {"path": "${{parent.inputs.RAW}}", "type": "mltable", "mode": "eval_mount"}, "n": 5, "b": True}
    changes = {f"{STEP}.inputs": inputs, f"{STEP}.task.program_arguments": "--n ${{inputs.N}} ${{ inputs.b }}"}
    spec = spec_of(PIPELINE, folder, **changes)
    files = dict(spec.input_paths())["files"]
    assert (files.path, files.type, files.mode) == (f"{folder}/data", "mltable", "eval_mount")
    assert spec.argv() == ["--n", "5", "True"]


def test_settings_may_be_bound_to_values_of_the_pipeline(folder: Path) -> None:
    bound = "${{parent.inputs.count}}"
    spec = spec_of(PIPELINE, folder, **{
        f"{STEP}.mini_batch_size": bound, f"{STEP}.max_concurrency_per_instance": bound,
        f"{STEP}.resources": {"instance_count": bound}, f"{STEP}.retry_settings": {"max_retries": bound},
    })  # fmt: skip
    assert (spec.size.files, spec.max_concurrency_per_instance, spec.instance_count, spec.run_max_try) == (4, 4, 4, 5)


def test_a_step_has_from_its_component_what_it_does_not_say_itself(folder: Path) -> None:
    component = changed(COMPONENT, mini_batch_error_threshold=4, max_concurrency_per_instance=3, logging_level="DEBUG",
                        retry_settings={"max_retries": 7}, resources={"instance_count": 2}, error_threshold=9,
                        environment_variables={"A": "component", "B": "component"})  # fmt: skip
    (folder / "parts").mkdir()
    (folder / "parts" / "score.yml").write_text(yaml.safe_dump(changed(component, **{"task.code": "../src"})))
    step = {
        "type": "parallel", "component": "./parts/score.yml", "inputs": {"FILES": "${{parent.inputs.raw}}"},
        "mini_batch_error_threshold": 0, "max_concurrency_per_instance": 1, "environment_variables": {"A": "step"},
    }  # fmt: skip
    for component_path in ("./parts/score.yml", "file:./parts/score.yml", component):
        spec = spec_of(PIPELINE, folder, **{STEP: {**step, "component": component_path}})
        assert spec.mini_batch_error_threshold == 4, "what is falsy in the step comes from the component"
        assert (spec.max_concurrency_per_instance, spec.run_max_try, spec.instance_count) == (1, 8, 2)
        assert (spec.error_threshold, spec.logging_level) == (9, "DEBUG")
        assert spec.environment_variables == {"A": "step", "B": "component"}
        assert Path(spec.code).resolve() == folder / "src"
        assert spec.argv() == ["--limit", "3"], "what is optional and not given is left out with its option"
    strict = read(changed(PIPELINE, **{STEP: {**step, "component": component, "error_threshold": 0}}), folder)
    assert strict.job.error_threshold == 0, "a step that says so allows none, whatever its component allows"
    assert "/jobs/score/mini_batch_error_threshold: 0 is read as not set" in " ".join(map(str, strict.notes))
    spec = spec_of(PIPELINE, folder, **{STEP: {**step, "inputs": {**step["inputs"], "model": {"path": "./data"}}}})  # type: ignore[dict-item]
    assert spec.argv() == ["--model", f"{folder}/data", "--limit", "3"]


def test_a_component_alone_is_a_job_once_its_inputs_have_paths(folder: Path) -> None:
    (folder / "score.yml").write_text(yaml.safe_dump(COMPONENT))
    spec = read_job_file(folder / "score.yml", ["inputs.files.path=./data", "mini_batch_size='7'"]).job
    assert (spec.data_paths(), spec.mini_batch_size, spec.append_row_to) == ([f"{folder}/data"], 7, "scores")


def test_a_step_may_let_the_job_choose_the_size_of_its_mini_batches(folder: Path) -> None:
    """Which Azure ML does not know."""
    assert spec_of(PIPELINE, folder, **{f"{STEP}.mini_batch_size": "auto"}).size.is_auto
    (folder / "score.yml").write_text(yaml.safe_dump(COMPONENT))
    assert read_job_file(folder / "score.yml", ["inputs.files.path=./data", "mini_batch_size=auto"]).job.size.is_auto


def test_the_parallel_step_of_a_longer_pipeline_runs_alone_without_the_others(folder: Path) -> None:
    longer = changed(PIPELINE, **{
        "jobs.prepare": {"type": "command", "command": "make"},
        "jobs.score.inputs.files": {"path": "${{parent.jobs.prepare.outputs.made}}"},
    })  # fmt: skip
    (folder / "pipeline.yml").write_text(yaml.safe_dump(longer))
    left_out = ["jobs.prepare=null", "jobs.score.inputs.files.path=./data"]
    assert read_job_file(folder / "pipeline.yml", left_out).job.data_paths() == [f"{folder}/data"]


def test_any_field_of_any_spelling_is_set_from_the_command_line(folder: Path) -> None:
    (folder / "pipeline.yml").write_text(yaml.safe_dump(PIPELINE))
    spec = read_job_file(
        folder / "pipeline.yml",
        ["jobs.score.inputs.files={path: ./data/one.txt, type: uri_file}", "jobs.score.task.entry_script=a.py"],
    ).job
    assert (spec.data_paths(), spec.entry_script) == ([f"{folder}/data/one.txt"], "a.py")
    (folder / "config.yml").write_text(yaml.safe_dump(CONFIG))
    spec = read_job_file(folder / "config.yml", ["inputs.0=./src", "parallel_run_config.node_count=5"]).job
    assert (spec.data_paths(), spec.instance_count) == ([f"{folder}/src"], 5)


@pytest.mark.parametrize(
    "path, name",
    [
        ("azureml://datastores/${{default_datastore}}/paths/${{name}}/all.csv", "all.csv"),
        ("azureml://datastores/${{default_datastore}}/paths/${{output_name}}", "scores"),
        (None, ""),
    ],
)
def test_without_a_default_datastore_an_output_goes_to_the_jobs_own_outputs(
    folder: Path, path: str | None, name: str
) -> None:
    outputs = {"scores": {"type": "uri_file", "path": path}} if path else {"scores": None}
    reading = read(changed(PIPELINE, **{f"{STEP}.outputs": outputs}), folder)
    assert (reading.job.outputs["scores"].path, reading.job.outputs["scores"].file_name) == ("", name)
    assert any("own outputs" in str(note) for note in reading.notes) == (path is not None)


@pytest.mark.parametrize(
    "path, place",
    [
        (
            "azureml://datastores/${{default_datastore}}/paths/${{name}}/a",
            f"azureml://datastores/ours/paths/{UNIQUE_NAME}/a",
        ),
        ("azureml://datastores/d/paths/x/${{output_name}}", "azureml://datastores/d/paths/x/scores"),
        (
            "azureml://subscriptions/1/resourcegroups/g/workspaces/w/datastores/d/paths/x",
            "azureml://datastores/d/paths/x",
        ),
        ("wasbs://c@acc.blob.core.windows.net/x", "wasbs://c@acc.blob.core.windows.net/x"),
    ],
)
def test_an_output_may_be_in_a_store(folder: Path, path: str, place: str) -> None:
    outputs = {"scores": {"type": "uri_folder", "path": path}}
    document = changed(PIPELINE, **{f"{STEP}.outputs": outputs, "settings.default_datastore": "azureml:ours"})
    assert read(document, folder).job.outputs["scores"].path == place


@pytest.mark.parametrize(
    "given, place",
    [
        ({"datastore": "d", "path_on_datastore": "a/b"}, "azureml://datastores/d/paths/a/b"),
        ({"datastore": "d", "path_on_datastore": "/a/*.csv", "mode": "mount"}, "azureml://datastores/d/paths/a/*.csv"),
        ({"datastore": "d"}, "azureml://datastores/d/paths/"),
        ({"path": ["d", "a"]}, "azureml://datastores/d/paths/a"),
        ({"path": "https://acc.blob.core.windows.net/c/a"}, "https://acc.blob.core.windows.net/c/a"),
    ],
)
def test_a_data_reference_names_what_is_in_a_datastore(folder: Path, given: dict[str, Any], place: str) -> None:
    reading = read({**CONFIG, "inputs": [{"data_reference_name": "raw", **given}]}, folder)
    assert reading.job.inputs["raw"].path == place  # type: ignore[union-attr]


def test_an_output_may_have_a_local_path(folder: Path) -> None:
    outputs = {"scores": {"path": "./out/${{name}}/${{output_name}}"}}
    spec = spec_of(PIPELINE, folder, **{f"{STEP}.outputs": outputs})
    assert spec.outputs["scores"].path == f"{folder}/out/{UNIQUE_NAME}/scores"


@pytest.mark.parametrize("form", ["azureml:{}", "file:{}", "file://{}", "azureml:./{}", "file:./{}"])
def test_local_paths_may_be_spelled_as_the_sdk_writes_them(folder: Path, form: str) -> None:
    """`Job._to_dict()` puts `azureml:` before absolute paths."""

    def spelled(name: str) -> str:
        return form.format(name if "./" in form else folder / name)

    (folder / "score.yml").write_text(yaml.safe_dump(COMPONENT))
    (folder / "conda.yml").write_text("dependencies: [python=3.11, pip: [six]]")
    spec = spec_of(PIPELINE, folder, **{
        "inputs.raw": {"type": "uri_folder", "path": spelled("data")}, f"{STEP}.task.code": spelled("src"),
        f"{STEP}.outputs": {"scores": {"type": "uri_file", "path": spelled("paths/x.csv")}},
        f"{STEP}.task.environment": {"image": "i", "conda_file": spelled("conda.yml")},
    })  # fmt: skip
    assert (spec.data_paths(), spec.code) == ([f"{folder}/data"], f"{folder}/src")
    assert spec.outputs["scores"].path == f"{folder}/paths/x.csv"
    assert spec.environment.requirements == ["six"]
    step = {"type": "parallel", "component": spelled("score.yml"), "inputs": {"FILES": "${{parent.inputs.raw}}"}}
    assert spec_of(PIPELINE, folder, **{STEP: step}).entry_script == "score.py"


def test_what_only_places_work_in_azure_is_accepted_and_said(folder: Path) -> None:
    reading = read(
        changed(PIPELINE, **{
            f"{STEP}.compute": "azureml:c", f"{STEP}.identity": {"type": "managed"},
            f"{STEP}.resources": {"instance_type": "x", "shm_size": "2g"}, f"{STEP}.is_deterministic": True,
            f"{STEP}.task.environment": {"image": "some/image", "environment_variables": {"A": "1"}},
        }),
        folder,
    )  # fmt: skip
    said = {note.pointer for note in reading.notes}
    assert {
        "/settings/default_compute", "/jobs/score/compute", "/jobs/score/identity", "/jobs/score/is_deterministic",
        "/jobs/score/resources/instance_type", "/jobs/score/resources/shm_size", "/jobs/score/task/environment/image",
    } <= said  # fmt: skip
    assert reading.job.environment_variables == {"A": "1"}


def test_options_without_effect_are_noted(folder: Path) -> None:
    arguments = "--copy_logs_to_parent True --metrics_name_prefix m --push_metrics_to_parent True"
    reading = read(changed(PIPELINE, **{f"{STEP}.task.program_arguments": arguments}), folder)
    notes = "\n".join(map(str, reading.notes))
    for name in ("copy_logs_to_parent", "metrics_name_prefix", "push_metrics_to_parent"):
        assert name in notes


@pytest.mark.parametrize(
    "given, asset",
    [
        ({"name": "a", "version": 1}, {"name": "a", "version": "1", "type": "uri_file"}),
        ({"name": "a"}, {"name": "a", "version": "", "type": "uri_file"}),
        ({"type": "custom_model", "name": "a"}, {"name": "a", "version": "", "type": "custom_model"}),
    ],
)
def test_an_output_with_a_name_becomes_an_asset(folder: Path, given: dict[str, Any], asset: dict[str, str]) -> None:
    outputs = {"scores": {"type": "uri_file", **given}}
    output = spec_of(PIPELINE, folder, **{f"{STEP}.outputs": outputs}).outputs["scores"].asset
    assert output is not None
    assert output.model_dump() == asset


def test_a_conda_file_is_read_from_beside_the_document_that_names_it(folder: Path) -> None:
    (folder / "conda.yml").write_text("dependencies: [python=3.11, pandas=2.1, {pip: [six>=1.16, azureml-core]}]")
    environment = {"name": "e", "version": 1, "image": "i", "conda_file": "./conda.yml"}
    for given in (environment, "file:env.yml"):
        (folder / "env.yml").write_text(yaml.safe_dump(environment))
        found = spec_of(PIPELINE, folder, **{f"{STEP}.task.environment": given}).environment
        assert (found.python, found.requirements) == ("3.11", ["pandas==2.1.*", "six>=1.16", "azureml-core"])
    findings = Findings()
    read_environment(environment, DocumentLocation("", folder), findings)
    assert "leave it out, and they find that of ParallelRun" in str(findings.notes[-1])


@pytest.mark.parametrize(
    "kind, default, value",
    [
        ("number", "1e-4", 0.0001), ("number", 3, 3), ("number", "-2", -2), ("integer", "5", 5), ("integer", 5.0, 5),
        ("integer", "123456789012345678", 123456789012345678), ("integer", "10.0", 10), ("string", 5, "5"),
        ("string", 1.5, "1.5"), ("boolean", "True", True), ("boolean", "false", False), ("boolean", False, False),
    ],
)  # fmt: skip
def test_a_literal_becomes_what_it_is_declared_to_be(folder: Path, kind: str, default: object, value: object) -> None:
    declared = {"type": kind, "default": default, "optional": "true", "enum": [default]}
    spec = spec_of(COMPONENT, folder, **{"inputs.files.path": "./data", "inputs.limit": declared})
    found = spec.inputs["limit"]
    assert isinstance(found, ValueInput)
    assert (found.value, type(found.value)) == (value, type(value))


def test_a_component_that_stands_alone_may_have_plain_literals(folder: Path) -> None:
    spec = spec_of(COMPONENT, folder, **{"inputs.files.path": "./data", "inputs.limit": 5})
    assert spec.argv() == ["--limit", "5"]
    job = COMPONENT | {"$schema": "https://azuremlschemas.azureedge.net/latest/parallelJob.schema.json"}
    values = {"inputs.files.path": "./data", "inputs.limit": "string", "experiment_name": "nightly"}
    assert spec_of(job, folder, **values).argv() == ["--limit", "string"]
    with pytest.raises(InvalidInput, match="not 'many'") as refused:
        spec_of(COMPONENT, folder, **{"inputs.files.path": "./data", "inputs.limit": "many"})
    assert refused.value.problems[0].hint == "if it is a value: limit: {type: string, value: many}"


@pytest.mark.parametrize("document", [PIPELINE, CONFIG])
def test_paths_of_a_document_that_came_over_the_network_stay_as_they_are(document: dict[str, Any]) -> None:
    spec = read_job(document).job
    assert (spec.code, spec.data_paths()) == ("./src", ["./data"])


@pytest.mark.parametrize("document", [PIPELINE, COMPONENT, CONFIG])
def test_a_spec_means_the_same_when_it_is_read_again(folder: Path, document: dict[str, Any]) -> None:
    changes = {"inputs.files.path": "./data"} if document is COMPONENT else {}
    spec = spec_of(document, folder, **changes)
    assert read_job(spec.model_dump(mode="json", exclude_unset=True), folder=folder).job == spec


def test_reuse_is_noted_as_without_effect_only_where_it_is(folder: Path) -> None:
    alone = changed(CONFIG, allow_reuse=True)
    assert any("is never reused" in str(note) for note in read(alone, folder).notes)
    steps = {"score": alone, "again": alone}
    notes = read({"type": "pipeline", "jobs": steps}, folder).notes
    assert not any("is never reused" in str(note) for note in notes), "in a pipeline, it is"
