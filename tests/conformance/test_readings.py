"""What documents of Azure ML mean here: every spelling becomes the one job spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from parallelrun.errors import InvalidInput
from parallelrun.job_file.reading import read_job_file
from parallelrun_core.azure.options import OPTIONS
from parallelrun_core.intake.reading import read_job
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.expressions import UNIQUE_NAME
from parallelrun_core.spec.fields import Budget, Input, ValueInput
from parallelrun_core.spec.later_inputs import LATER_FIELDS
from tests.conformance.documents import COMPONENT, CONFIG, DELETE, PIPELINE, changed, make_folder, read

STEP = "jobs.score"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path)


def spec_of(document: dict[str, Any], folder: Path, **changes: Any) -> JobSpec:
    return read(changed(document, **changes), folder).job


def test_a_pipeline_of_one_parallel_step_is_a_job(folder: Path) -> None:
    spec = spec_of(PIPELINE, folder)
    assert (spec.name, spec.code, spec.entry_script) == ("score many", f"{folder}/src", "score.py")
    assert spec.data_paths() == [f"{folder}/data"]
    assert spec.argv() == ["--model", f"{folder}/data"]
    assert dict(spec.input_paths())["model"].mode == "download"
    assert (spec.output_action, spec.append_row_to, spec.outputs["scores"].type) == ("append_row", "scores", "uri_file")
    assert (spec.mini_batch_size, spec.run_max_try, spec.run_invocation_timeout) == (5, 3, 60)


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
    (folder / "conda.yml").write_text("dependencies: [python=3.11, pandas=2.1, {pip: [six>=1.16]}]")
    environment = {"name": "e", "version": 1, "image": "i", "conda_file": "./conda.yml"}
    for given in (environment, "file:env.yml"):
        (folder / "env.yml").write_text(yaml.safe_dump(environment))
        found = spec_of(PIPELINE, folder, **{f"{STEP}.task.environment": given}).environment
        assert (found.python, found.requirements) == ("3.11", ["pandas==2.1.*", "six>=1.16"])


# Options of the engine among the arguments


OPTION_VALUES: dict[str, tuple[str, object]] = {
    "error_threshold": ("7", 7), "allowed_failed_percent": ("30", 30), "allowed_failed_count": ("2", 2),
    "task_overhead_timeout": ("1200", 1200), "progress_update_timeout": ("90", 90),
    "first_task_creation_timeout": ("80", 80), "copy_logs_to_parent": ("True", True),
    "metrics_name_prefix": ("m_", "m_"), "push_metrics_to_parent": ("False", False),
    "resource_monitor_interval": ("20", 20), "profiling_module": ("cProfile", "cProfile"),
    "append_row_dataframe_header": ("True", True), "append_row_safe_output": ("true", True),
    "rank_mini_batch_count": ("4", 4), "nice": ("5", 5),
    "rate_limits": ("openai,other", ("openai", "other")), "budget_usd": ("50", Budget(usd=50)),
    "mini_batch_format": ("arrow", "arrow"), "string_dtype": ("pandas", "pandas"), "on_failure": ("isolate", "isolate"),
    "fail_fast": ("True", True),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTION_VALUES)
def test_an_option_of_the_engine_is_taken_and_stays_in_the_arguments(folder: Path, name: str) -> None:
    text, value = OPTION_VALUES[name]
    for given in (f"--{name} {text}", f"--{name}={text}"):
        spec = spec_of(PIPELINE, folder, **{f"{STEP}.task.program_arguments": f"--mine 'a b' {given} --other"})
        assert getattr(spec, OPTIONS[name].field) == value
        assert spec.argv() == ["--mine", "a b", *given.split(), "--other"]


def test_the_abbreviation_of_the_official_samples_is_understood_and_said(folder: Path) -> None:
    arguments = "--model x --resource_monitor_interva 20 --profiling deep --n 3"
    reading = read(changed(PIPELINE, **{f"{STEP}.task.program_arguments": arguments}), folder)
    assert reading.job.resource_monitor_interval == 20
    assert (reading.job.profiling_module, reading.job.nice) == ("", None)
    notes = [str(note) for note in reading.notes]
    assert any("--resource_monitor_interva is read as --resource_monitor_interval" in note for note in notes)
    assert any("--profiling is left to the script" in note for note in notes)


@pytest.mark.parametrize(
    "arguments",
    [
        "--rank 16",
        "--rank_mini_batch_coun 16",
        "--resume ckpt.pt",
        "--progress 1",
        "--first 10",
        "--task 5",
        "--copy=1",
    ],
)
def test_an_option_of_the_script_is_not_taken_for_the_beginning_of_one_of_the_engine(
    folder: Path, arguments: str
) -> None:
    plain = spec_of(PIPELINE, folder)
    reading = read(changed(PIPELINE, **{f"{STEP}.task.program_arguments": arguments}), folder)
    assert reading.job.model_copy(update={"program_arguments": plain.program_arguments}) == plain
    name = arguments.replace("=", " ").split()[0]
    assert any(f"{name} is left to the script" in str(note) for note in reading.notes)


def test_an_option_may_be_bound_to_a_value_and_all_options_are_known(folder: Path) -> None:
    arguments = {
        f"{STEP}.inputs.most": "${{parent.inputs.count}}",
        f"{STEP}.task.program_arguments": "--error_threshold ${{inputs.most}} --amlbi_async_mode False",
    }
    spec = spec_of(PIPELINE, folder, **arguments)
    assert (spec.error_threshold, spec.in_flight, spec.mini_batches_in_flight) == (4, "async", 1)
    others = {name for name in OPTIONS if name.startswith("amlbi_")}
    assert set(OPTION_VALUES) | others | {"resume_from", "mini_batches_in_flight", "in_flight"} == set(OPTIONS)


@pytest.mark.parametrize("more, count", [("", "auto"), (" --mini_batches_in_flight 12", 12)])
def test_the_streaming_mode_of_the_engine_has_several_mini_batches_in_flight(
    folder: Path, more: str, count: int | str
) -> None:
    functions = ("enqueue", "check_all_tasks_processed", "get_finished_batch_result", "get_processing_batch_number")
    (folder / "src" / "score.py").write_text("".join(f"def {name}(*_): ...\n" for name in functions))
    spec = spec_of(PIPELINE, folder, **{f"{STEP}.task.program_arguments": f"--amlbi_async_mode true{more}"})
    assert (spec.in_flight, spec.mini_batches_in_flight, spec.contract) == ("streaming", count, "streaming")


ROWS = "--amlbi_file_format jsonl --amlbi_mini_batch_rows 3"


def test_files_of_json_lines_are_cut_by_rows_and_each_row_is_a_dict(folder: Path) -> None:
    reading = read(changed(PIPELINE, **{f"{STEP}.task.program_arguments": f"{ROWS} --amlbi_pf_enabled False"}), folder)
    spec = reading.job
    inputs = dict(spec.input_paths())
    assert (spec.mini_batch_size, spec.input_data) == ("rows:3", ("files",))
    assert inputs["files"].transformations == ({"read_json_lines": {"rows_as": "dicts"}},)
    assert inputs["model"].transformations == ()
    assert any("mini_batch_size is not used" in str(note) for note in reading.notes)
    assert spec.argv()[:2] == ["--amlbi_file_format", "jsonl"], "the script sees them"

    again = read_job(spec.model_dump(mode="json", exclude_defaults=True))
    assert (again.job.mini_batch_size, again.notes) == ("rows:3", reading.notes[:0]), "as a server reads it"
    (step,) = dict(again.job.input_paths())["files"].transformations
    assert step == {"read_json_lines": {"on_mismatch": "keep", "rows_as": "dicts"}}


def test_each_field_of_an_input_is_known_before_another_step_has_made_its_path() -> None:
    assert set(LATER_FIELDS) - {"literal"} == set(Input.model_fields) - {"path", "asset"}


def test_rows_and_mixed_types_hold_for_a_table_that_says_itself_how_it_is_read(folder: Path) -> None:
    text = "--amlbi_mini_batch_rows 7 --amlbi_dataframe_mixed_types true"
    table = {f"{STEP}.inputs.files": {"path": "${{parent.inputs.raw}}", "type": "mltable"}}
    spec = spec_of(PIPELINE, folder, **table, **{f"{STEP}.task.program_arguments": text})
    inputs = dict(spec.input_paths())
    assert (spec.mini_batch_size, inputs["files"].on_mismatch, inputs["model"].on_mismatch) == ("rows:7", "keep", "")
    assert "on_mismatch" in spec.model_dump(mode="json", exclude_defaults=True)["inputs"]["files"]

    with pytest.raises(InvalidInput, match="says itself how it is read"):
        spec_of(PIPELINE, folder, **table, **{f"{STEP}.task.program_arguments": ROWS})


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


# v1


def test_a_v1_configuration_is_a_job(folder: Path) -> None:
    spec = spec_of(CONFIG, folder, **{
        "side_inputs": {"model": "./src"}, "arguments": ["--model", "${{inputs.model}}", "--n", 20, "--blank", " "],
        "name": "score-all", "output": "./out", "parallel_run_config.allowed_failed_count": 3,
        "parallel_run_config.run_max_try": 5, "parallel_run_config.process_count_per_node": 6,
    })  # fmt: skip
    assert (spec.name, spec.output, spec.output_action) == ("score-all", f"{folder}/out", "append_row")
    assert (spec.instance_count, spec.max_concurrency_per_instance, spec.run_max_try) == (2, 6, 5)
    assert (spec.mini_batch_error_threshold, spec.error_threshold, spec.size.files) == (3, 10, 10)
    assert spec.argv() == ["--model", f"{folder}/src", "--n", "20", "--blank", " "]
    assert spec.input_data == ("input_0",)


def test_a_v1_configuration_without_a_folder_has_that_of_its_script(folder: Path) -> None:
    changes = {"parallel_run_config.source_directory": DELETE, "parallel_run_config.entry_script": "src/score.py"}
    spec = spec_of(CONFIG, folder, **changes)
    assert (spec.code, spec.entry_script) == (f"{folder}/src", "score.py")


@pytest.mark.parametrize("given", ["my-env", {"name": "e", "python": {"condaDependencies": {"dependencies": ["six"]}}}])
def test_a_v1_environment_is_a_name_or_has_conda_dependencies(folder: Path, given: object) -> None:
    spec = spec_of(CONFIG, folder, **{"parallel_run_config.environment": given})
    assert spec.environment.requirements == ([] if isinstance(given, str) else ["six"])


# Over the network there are no files beside a document


@pytest.mark.parametrize("document", [PIPELINE, CONFIG])
def test_paths_of_a_document_that_came_over_the_network_stay_as_they_are(document: dict[str, Any]) -> None:
    spec = read_job(document).job
    assert (spec.code, spec.data_paths()) == ("./src", ["./data"])


@pytest.mark.parametrize("document", [PIPELINE, COMPONENT, CONFIG])
def test_a_spec_means_the_same_when_it_is_read_again(folder: Path, document: dict[str, Any]) -> None:
    changes = {"inputs.files.path": "./data"} if document is COMPONENT else {}
    spec = spec_of(document, folder, **changes)
    assert read_job(spec.model_dump(mode="json", exclude_unset=True), folder=folder).job == spec
