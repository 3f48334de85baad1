"""Which jobs may go on with the work of which: refusals name each setting that is in the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parallelrun_api.submission import takeover
from parallelrun_api.submission.takeover import earlier_job
from parallelrun_core.errors import Conflict, InvalidInput
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.mltable.input_plan import InputPlan, save_plans
from parallelrun_core.mltable.plan import plan_inputs
from parallelrun_core.spec import Input, JobSpec
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState

EARLIER = "job_00000000000000000000"
GOOD: dict[str, Any] = {"entry_script": "main.py", "inputs": {"data": {"path": "/data"}, "n": 3}, "mini_batch_size": 5}


def earlier(root: Path, *, ended: bool = True, **settings: Any) -> JobSpec:
    """There is a job with these settings."""
    spec = JobSpec.parse({**GOOD, **settings})
    folder = JobFolder(root, EARLIER)
    folder.create(JobRecord(job_id=EARLIER, submitted=1.0, code="c", spec=spec.model_dump(mode="json")))
    save_plans(folder.path, plan_inputs(spec))
    if ended:
        folder.conclude(JobResult(job_id=EARLIER, state=JobState.CANCELED, started=1.0, ended=2.0, progress=Progress()))
    return spec


def ask(root: Path, **settings: Any) -> JobFolder:
    return earlier_job(root, JobSpec.parse({**GOOD, "resume_from": EARLIER, **settings}))


def refused(root: Path, **settings: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as found:
        ask(root, **settings)
    return {problem.pointer: problem.message for problem in found.value.problems}


def test_what_makes_no_difference_to_plan_and_rows_may_differ_and_no_new_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert JobSpec.model_fields.keys() > takeover.MAY_DIFFER | takeover.BY_RULES
    assert Input.model_fields.keys() > takeover.INPUT_MAY_DIFFER | takeover.INPUT_BY_PLAN
    assert {*InputPlan.__struct_fields__} > takeover.PLAN_MAY_DIFFER
    earlier(tmp_path)
    changes = {
        "entry_script": "other.py", "program_arguments": "--x", "run_max_try": 9, "run_invocation_timeout": 1,
        "instance_count": 3, "max_concurrency_per_instance": 2, "error_threshold": 4, "mini_batch_size": "5",
        "append_row_file_name": "other.csv", "environment": {"pip": ["six"]}, "logging_level": "DEBUG", "name": "new",
        "inputs": {"renamed": {"path": "/data", "mode": "direct", "asset": "azureml:data:1"}, "n": 4},
        "output": "/elsewhere",
    }  # fmt: skip
    assert ask(tmp_path, **changes).job_id == EARLIER
    monkeypatch.setattr(takeover, "MAY_DIFFER", takeover.MAY_DIFFER - {"logging_level"})
    monkeypatch.setattr(takeover, "INPUT_MAY_DIFFER", takeover.INPUT_MAY_DIFFER - {"asset"})
    monkeypatch.setattr(takeover, "PLAN_MAY_DIFFER", takeover.PLAN_MAY_DIFFER - {"name"})
    assert [*refused(tmp_path, **changes)] == ["/inputs/renamed/asset", "/inputs/renamed", "/logging_level"]


def test_the_order_of_columns_matters_once_there_are_rows_that_have_them(tmp_path: Path) -> None:
    earlier(tmp_path)
    ask(tmp_path, append_row_columns="name")
    JobFolder(tmp_path, EARLIER).layout.schema("returned").touch()
    ask(tmp_path, append_row_columns="position")
    assert list(refused(tmp_path, append_row_columns="name")) == ["/append_row_columns"]


@pytest.mark.parametrize(
    "pointer, settings",
    [
        ("/inputs/data/path", {"inputs": "/other"}),
        ("/inputs/data/mode", {"inputs": {"data": {"path": "/data", "mode": "download"}}}),
        ("/inputs/data", {"inputs": {"data": {"path": "/data", "transformations": ["read_delimited"]}}}),
        ("/input_data", {"inputs": {"a": "/data", "b": "/b"}, "input_data": ["a", "b"]}),
        ("/mini_batch_size", {"mini_batch_size": 6}),
        ("/mini_batch_size", {"mini_batch_size": None}),
        ("/output_action", {"output_action": "summary_only"}),
        ("/append_row_separator", {"append_row_separator": ","}),
        ("/append_row_safe_output", {"append_row_safe_output": True}),
        ("/append_row_dataframe_header", {"append_row_dataframe_header": True}),
        ("/append_row_file_name", {"append_row_file_name": "rows.parquet"}),
    ],
)
def test_a_setting_that_plan_or_rows_depend_on_is_refused_by_name(
    tmp_path: Path, pointer: str, settings: dict[str, Any]
) -> None:
    earlier(tmp_path)
    found = refused(tmp_path, **settings)
    assert list(found) == [pointer]
    assert EARLIER in found[pointer]


def test_all_that_differs_is_told_at_once(tmp_path: Path) -> None:
    earlier(tmp_path, rank_mini_batch_count=4, inputs={}, mini_batch_size=None)
    found = refused(tmp_path)
    assert set(found) == {"/input_data", "/mini_batch_size", "/rank_mini_batch_count"}
    assert found["/mini_batch_size"].startswith("it is 5 here but not set in job")
    other = {"path": "/other", "mode": "download", "hidden_files": "skip", "transformations": ["read_delimited"]}
    (tmp_path / "of_files").mkdir()
    earlier(tmp_path / "of_files", inputs={"data": {"path": "/data", "hidden_files": "read"}})
    parts = ["/path", "/mode", "/hidden_files", ""]
    assert list(refused(tmp_path / "of_files", inputs={"data": other})) == [f"/inputs/data{part}" for part in parts]


def test_the_separator_does_not_matter_where_there_is_none(tmp_path: Path) -> None:
    earlier(tmp_path, append_row_file_name="rows.jsonl")
    ask(tmp_path, append_row_file_name="other.ndjson", append_row_separator=",", append_row_safe_output=True)


def test_a_table_is_held_against_what_it_was_when_its_job_began(tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.mkdir()
    text = "paths: [{pattern: ./*.csv}]\ntransformations: [read_delimited, take_random_sample: {probability: 0.5}]\n"
    (table / "MLTable").write_text(text)
    data = {"type": "mltable", "path": str(table), "litter_files": "warn"}
    inputs = {"data": data}
    earlier(tmp_path, inputs=inputs)
    ask(tmp_path, inputs=inputs, string_dtype="object")  # a seed that was drawn makes no difference
    read_otherwise = refused(tmp_path, inputs=inputs, mini_batch_format="arrow", string_dtype="pandas")
    assert list(read_otherwise) == ["/mini_batch_format", "/string_dtype"]
    assert list(refused(tmp_path, inputs={"data": {**data, "litter_files": "skip"}})) == ["/inputs/data/litter_files"]
    (table / "MLTable").write_text(text.replace("0.5", "0.6"))
    assert list(refused(tmp_path, inputs=inputs)) == ["/inputs/data"]


@pytest.mark.parametrize("job_id", ["job_00000000000000000001", "../../etc"])
def test_a_job_that_is_not_there_is_refused(tmp_path: Path, job_id: str) -> None:
    assert "there is no job" in refused(tmp_path, resume_from=job_id)["/resume_from"]


def test_a_job_that_has_not_ended_is_refused_with_what_to_do(tmp_path: Path) -> None:
    earlier(tmp_path, ended=False)
    with pytest.raises(Conflict, match=r"has not ended .*parallelrun job cancel"):
        ask(tmp_path)
