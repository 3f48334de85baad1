"""Options of Azure ML's engine among the arguments of a script (reference §1.4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun.errors import InvalidInput
from parallelrun_core.azure.options import OPTIONS
from parallelrun_core.intake.reading import read_job
from parallelrun_core.spec.fields import Budget, Input
from parallelrun_core.spec.later_inputs import LATER_FIELDS
from tests.conformance.documents import PIPELINE, changed, read, spec_of

STEP = "jobs.score"


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
