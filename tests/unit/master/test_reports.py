"""What the reports for people say, line by line, and what does not fit fails nothing."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import msgspec
import pytest

from parallelrun_core.folder.engine_log import EngineLog
from parallelrun_core.folder.records import JobResult
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import Failure, Phase
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master.planning.amount import TableAmount
from parallelrun_master.policy.error_groups import ErrorGroups
from parallelrun_master.policy.hints import what_to_do
from parallelrun_master.reports.overview import Overview
from parallelrun_master.reports.result import write_job_result, write_user_errors
from parallelrun_master.reports.scheduling_log import SchedulingLog
from tests.unit.core.factories import failed

# The leader's log


def test_lines_are_those_of_the_reference_and_what_goes_wrong_is_copied(tmp_path: Path) -> None:
    log = EngineLog(tmp_path, "master_role.1", level="INFO")
    log.info("Start scheduling.")
    log.warning("two\nlines")
    log.error("bad \udcff")
    lines = (tmp_path / "sys" / "master_role.1.txt").read_text().splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\|INFO\|\d+\|\d+\|Start scheduling\.", lines[0])
    assert lines[2] == "    lines"
    assert (tmp_path / "sys" / "warning" / "master_role.1.txt").read_text().count("|WARNING|") == 1
    assert (tmp_path / "sys" / "error" / "master_role.1.txt").read_text().endswith("bad \\udcff\n")
    EngineLog(tmp_path, "quiet", level="WARNING").info("left out")
    EngineLog(tmp_path, "loud", level="DEBUG").info("told")
    assert [name for name in ("quiet", "loud") if (tmp_path / "sys" / f"{name}.txt").exists()] == ["loud"]


def test_a_log_that_cannot_be_written_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "sys").write_text("a file where a folder should be")
    EngineLog(tmp_path, "x").error("lost")


def test_the_checkpoints_are_told_for_each_input(tmp_path: Path) -> None:
    log = SchedulingLog(EngineLog(tmp_path, "m"), ["/a", "/b"], "node")
    log.start()
    log.begin_input(0, is_table=True)
    log.scheduled(0, 0, 1.0, finished=False, tables=TableAmount())
    log.scheduled(1, 10, 2.0, finished=False, tables=TableAmount())
    log.scheduled(5, 50, 3.0, finished=False, tables=TableAmount())
    log.begin_input(1, is_table=True)
    log.scheduled(8, 80, 4.0, finished=False, tables=TableAmount())
    log.scheduled(9, 88, 5.0, finished=True, tables=TableAmount())
    said = [line.split("|", 4)[4] for line in (tmp_path / "sys" / "m.txt").read_text().splitlines()]
    said = [re.sub(r"created at .*\.", "created.", line) for line in said]
    assert said == [
        "Start scheduling.",
        "The task provider type is TabularDatasetProvider.",
        "Input folders ['/a', '/b'], from index 0.",
        "Scheduling tasks for input 0: /a.",
        "Save checkpoint for folder 0, offset 10, task_id 1, total_items 10, finished=False.",
        "node: setting job stage to FIRST_TASK_SCHEDULED, reason: The first task created.",
        "Scheduling tasks for input 1: /b.",
        "Save checkpoint for folder 1, offset 80, task_id 8, total_items 80, finished=False.",
        "Save checkpoint for folder 1, offset 88, task_id 9, total_items 88, finished=True.",
        "Scheduling finished: 9 mini-batches with 88 items. node: setting job stage to ALL_TASKS_SCHEDULED.",
    ]


# What users open first


def test_the_overview_and_its_table(tmp_path: Path) -> None:
    overview = Overview(tmp_path)
    overview.progress(Progress(scheduled=5), 10.0)
    paced = {"recent_from": 100.0, "recent_to": 119.0, "recent_mini_batches": 5, "retried": 1}
    overview.progress(Progress(scheduled=10, listing_done=True, done=4, failed=1, running=2, **paced), 20.0, now=119.0)  # type: ignore[arg-type]
    overview.concatenation(Progress())
    overview.concatenation(Progress(bytes_concatenated=5, bytes_to_concatenate=10))
    (path,) = tmp_path.glob("job_progress_overview.??????????.txt")
    said = [line.partition(" ")[2] for line in path.read_text().splitlines()]
    assert said == [
        "No mini-batch of 5 so far is processed yet; with workers: 0.",
        "Processed 5 of 10 mini-batches in 20 s; 2 running, 1 failed, 1 try repeated; estimated remaining 19 s.",
        "Concatenation has not begun yet.",
        "Concatenated 5 of 10 bytes.",
    ]
    (table,) = (tmp_path / "sys" / "metrics").rglob("progress.csv")
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [list(row.values())[1:] for row in rows] == [
        ["N/A", "5", "0", "0", "10.0", "N/A"],
        ["10", "10", "5", "1", "20.0", "19.0"],
    ]


def test_a_short_job_has_no_table_of_its_progress(tmp_path: Path) -> None:
    Overview(tmp_path).progress(Progress(scheduled=1, listing_done=True, done=1), 9.9)
    assert [path.name.partition(".")[0] for path in tmp_path.rglob("*")] == ["job_progress_overview"]


def test_the_time_that_is_left_is_told_by_items_while_mini_batches_are_cut(tmp_path: Path) -> None:
    overview = Overview(tmp_path)
    for done, elapsed_s in ((0, 0.0), (100, 10.0)):
        progress = Progress(scheduled=20, done=done // 10, items_scheduled=200, items_ahead=300, items_done=done)
        progress.recent_from, progress.recent_to = 100.0, 100.0 + elapsed_s
        progress.recent_mini_batches, progress.recent_items = done // 10, done
        overview.progress(progress, elapsed_s, now=100.0 + elapsed_s)
        progress.all_found = True
        overview.progress(progress, elapsed_s, now=100.0 + elapsed_s)
    (path,) = tmp_path.glob("job_progress_overview.??????????.txt")
    left = [line.rpartition("estimated remaining ")[2] for line in path.read_text().splitlines() if "remaining" in line]
    assert left == ["unknown.", "40 s."]


def test_an_init_that_fails_is_among_the_errors_and_the_cause_of_none(tmp_path: Path) -> None:
    errors = ErrorGroups()
    for number in range(2):
        errors.add_phase(Phase("n", f"process00{number}", "INIT", 1e9, 3.0, Failure("INIT_EXCEPTION", "no\nmodel")))
    errors.add_phase(Phase("n", "process002", "INIT", 1e9, 3.0))
    errors.add_phase(Phase("n", "process002", "SHUTDOWN", 1e9, 3.0, Failure("RUN_EXCEPTION", "KeyError: 'x'")))
    errors.add(failed(5, message="ValueError"))
    assert errors.first is not None
    assert errors.first.message == "ValueError"
    write_user_errors(tmp_path, errors)
    told = (tmp_path / "user" / "error.txt").read_text()
    for line in (
        "4 errors; these are the most common. ", "2 x INIT_EXCEPTION: no\n", "in full: user/error/n/process000.txt",
        "1 x RUN_EXCEPTION: shutdown(): KeyError: 'x'\n", "1 x RUN_EXCEPTION: ValueError (mini-batch 5)\n",
    ):  # fmt: skip
        assert line in told


def test_a_message_that_stands_for_several_is_shown_with_their_line(tmp_path: Path) -> None:
    errors = ErrorGroups()
    for number in range(150):
        frame = '  File "score.py", line 7, in run'
        errors.add(failed(number, message=f"OSError: no /d/{number}", traceback=f"Traceback:\n{frame}\nOSError: no"))
    write_user_errors(tmp_path, errors)
    shown = (tmp_path / "user" / "error.txt").read_text()
    assert "     150 x RUN_EXCEPTION: OSError: no /d/0 (mini-batches 0, 1, 2)\n" in shown
    assert 'this is the first message of several; all come from File "score.py", line 7\n' in shown
    assert "/d/1" not in shown


def test_why_a_job_failed_is_in_the_files_that_users_open_first(tmp_path: Path) -> None:
    errors = ErrorGroups(Mask({"environment_variables": {"K": "hidden-value"}}))
    for number in range(3):
        errors.add(failed(number, message="ValueError: hidden-value is bad"))
    errors.add(failed(7, message="KeyError: 'x'"))
    failure = JobFailure(
        code="THRESHOLD_CROSSED", summary="Too many.", error_category="RUN_EXCEPTION", first_cause="ValueError: bad",
        sample_mini_batches=[0, 1, 2], log="user/error/n/process000.txt",
    )  # fmt: skip
    result = JobResult(
        job_id="job_1", state=JobState.FAILED, started=1.0, ended=2.0, progress=Progress(), failure=failure
    )
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in"})
    write_job_result(tmp_path, result, errors, spec)
    write_user_errors(tmp_path, errors)
    told = (tmp_path / "job_result.txt").read_text()
    for words in (
        "Reason: THRESHOLD_CROSSED: Too many.", "First cause: ValueError: bad", "Error category: RUN_EXCEPTION",
        "Sample mini-batches: 0, 1, 2", "Open next: user/error/n/process000.txt",
        "3 x RUN_EXCEPTION: ValueError: *** is bad (mini-batches 0, 1, 2)", "1 x RUN_EXCEPTION: KeyError: 'x'",
    ):  # fmt: skip
        assert words in told
    assert "Too many." in (tmp_path / "job_error.txt").read_text()
    assert (tmp_path / "user" / "error.txt").read_text().startswith("4 errors")
    assert "hidden-value" not in told + (tmp_path / "user" / "error.txt").read_text()
    completed = msgspec.structs.replace(result, state=JobState.COMPLETED, failure=None)
    write_job_result(tmp_path, completed, errors, spec)
    assert not (tmp_path / "job_error.txt").exists()
    by_key = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "partition_keys": ["year", "shop"]})
    write_job_result(tmp_path, msgspec.structs.replace(completed, order="sorted"), errors, by_key)
    assert "Order of the mini-batches: sorted by year, shop." in (tmp_path / "job_result.txt").read_text()


def test_items_that_failed_without_an_error_are_explained(tmp_path: Path) -> None:
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in"})
    ended = JobResult(
        job_id="job_1",
        state=JobState.COMPLETED,
        started=1.0,
        ended=2.0,
        progress=Progress(items_failed=3, items_short=3),
    )
    write_job_result(tmp_path, ended, ErrorGroups(), spec)
    assert "Note: run() returned fewer rows than it was given items" in (tmp_path / "job_result.txt").read_text()
    write_job_result(
        tmp_path, msgspec.structs.replace(ended, state=JobState.CANCELED, progress=Progress()), ErrorGroups(), spec
    )
    assert (tmp_path / "job_result.txt").read_text().startswith("Job job_1 was canceled.\n")
    assert "Warning" not in (tmp_path / "job_result.txt").read_text()


def test_the_numbers_of_a_job_that_ended_early_add_up(tmp_path: Path) -> None:
    progress = Progress(
        scheduled=500, listing_done=True, done=20, failed=1, items_scheduled=5000, items_done=200, items_failed=10
    )
    ended = JobResult(job_id="job_1", state=JobState.CANCELED, started=1.0, ended=2.0, progress=progress)
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in"})
    write_job_result(tmp_path, ended, ErrorGroups(), spec)
    result = (tmp_path / "job_result.txt").read_text()
    assert "500 scheduled, 20 done, 1 failed, 479 not decided, 0 tries repeated" in result
    assert "Items: 5,000 in all, 200 succeeded, 10 failed, 4,790 not decided." in result


def test_no_smaller_mini_batches_are_advised_where_each_is_a_partition() -> None:
    errors = ErrorGroups()
    errors.add(failed(0, items=9))
    progress = Progress(failed=1, items_failed=9)
    for extra, advises in ({}, True), ({"partition_keys": ["shop"]}, False):
        spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", **extra})
        assert errors.first is not None
        hint = what_to_do(spec, progress, errors.first)
        assert hint.startswith("an exception in run() fails every item")
        assert ("(mini_batch_size: 1), or run its items apart (on_failure: isolate)" in hint) == advises
    table = {"path": "/in", "transformations": ["read_parquet"]}
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": {"data": table}})
    assert errors.first is not None
    assert "(mini_batch_size: rows:1), or run" in what_to_do(spec, progress, errors.first)


@pytest.mark.parametrize("state, progress, first_line", [
    (JobState.COMPLETED, Progress(scheduled=9, done=9, items_scheduled=9, items_done=9), "has completed."),
    (
        JobState.COMPLETED,
        Progress(scheduled=100, done=3, failed=97, items_scheduled=100, items_done=3, items_failed=97),
        "has completed, but 97 of 100 items failed (97 %).",
    ),
    (
        JobState.COMPLETED,
        Progress(scheduled=2, done=2, items_done=1, items_failed=1999, items_short=1999, rows=1),
        "has completed, made 1 row of 2,000 items.",
    ),
    (JobState.FAILED, Progress(scheduled=9, failed=9, items_scheduled=9, items_failed=9), "has failed."),
])  # fmt: skip
def test_the_first_line_of_the_result_says_what_a_completed_job_has_lost(
    tmp_path: Path, state: JobState, progress: Progress, first_line: str
) -> None:
    result = JobResult(job_id="job_1", state=state, started=1.0, ended=2.0, progress=progress)
    write_job_result(tmp_path, result, ErrorGroups(), JobSpec.parse({"entry_script": "a.py", "inputs": "/data"}))
    lines = (tmp_path / "job_result.txt").read_text().splitlines()
    assert lines[0] == f"Job job_1 {first_line}"
    assert any("error_threshold" in line for line in lines) is (state is JobState.COMPLETED and progress.failed > 0)


def test_the_result_says_which_files_a_mini_batch_has_and_what_to_do(tmp_path: Path) -> None:
    errors = ErrorGroups()
    detail = '{"id": 4, "items": 10, "files": ["/a", "/b", "/c"]}'
    errors.add(failed(4, items=10, detail=detail))
    progress = Progress(scheduled=9, done=8, failed=1, items_failed=10, rows=80)
    result = JobResult(job_id="job_1", state=JobState.COMPLETED, started=1.0, ended=2.0, progress=progress)
    write_job_result(tmp_path, result, errors, JobSpec.parse({"entry_script": "a.py", "inputs": "/data"}))
    told = (tmp_path / "job_result.txt").read_text()
    assert "mini-batch 4 has the files /a, /b, /c, …\n" in told
    assert "Hint: an exception in run() fails every item of its mini-batch" in told
