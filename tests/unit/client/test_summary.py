"""What is said when a job has ended: by the command line, and by results and errors in Python."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from parallelrun import RunResult
from parallelrun.cli.job_show import _slow
from parallelrun.cli.output import say_summary
from parallelrun.models import Failure, Job, MiniBatch
from parallelrun.progress.summary import headline, is_clean, summary
from parallelrun_core.wire.failure import ErrorCount
from parallelrun_core.wire.progress import Progress

TIMES = {"started": "2026-11-21T09:30:00.000Z", "ended": "2026-11-21T09:30:03.200Z"}


def job(state: str, **fields: Any) -> Job:
    return Job(id="job_1", state=state, **fields)


def test_a_failure_is_shown_with_cause_traceback_and_log() -> None:
    failure = Failure(
        code="ERROR_THRESHOLD",
        summary="2 items have failed, 0 are allowed.",
        first_cause="ZeroDivisionError: division by zero",
        traceback='  File "score.py", line 3\n    1 / 0\n',
        sample_mini_batches=[4, 7],
        log="user/error/node1/process000.txt",
        hint="mend run()",
    )

    assert summary(job("failed", failure=failure), log_hint=lambda log: f"/out/logs/{log}") == [
        "failed: 2 items have failed, 0 are allowed.",
        "first cause: ZeroDivisionError: division by zero",
        '    File "score.py", line 3',
        "      1 / 0",
        "sample mini-batches: 4, 7",
        "log: /out/logs/user/error/node1/process000.txt",
        "hint: mend run()",
    ]


def test_a_job_that_completed_is_shown_with_its_counts() -> None:
    progress = Progress(scheduled=3, listing_done=True, done=3, rows=1234)

    assert summary(job("completed", progress=progress), log_hint=str) == [
        "completed: 3/3 mini-batches, 1,234 rows, 0 items failed"
    ]


@pytest.mark.parametrize(
    "state, expected",
    [("completed", "completed in 3.2 s: the command ended with exit code 0"), ("canceled", "canceled in 3.2 s")],
)
def test_a_command_is_shown_without_counts(state: str, expected: str) -> None:
    progress = Progress(scheduled=1, listing_done=True, done=1, rows=1)

    ended = job(state, progress=progress, spec={"command": "true"}, **TIMES)
    assert headline(ended) == expected
    resume = "parallelrun job resume job_1"
    goes_on = [f"run only what has no result yet: {resume}"] if state == "canceled" else []
    assert summary(ended, log_hint=str, resume=resume) == [expected, *goes_on]


def progress_of(**counts: Any) -> Progress:
    return Progress(listing_done=True, scheduled=100, items_scheduled=1000, rows=3, **counts)


@pytest.mark.parametrize(
    "progress, expected",
    [
        (progress_of(done=100, items_done=1000), "completed in 3.2 s: 100/100 mini-batches, 3 rows, 0 items failed"),
        (
            progress_of(done=3, failed=97, items_done=30, items_failed=970),
            "completed, but 970 of 1,000 items failed (97 %)",
        ),
        (
            progress_of(done=100, items_done=3, items_failed=997, items_short=997),
            "completed in 3.2 s: 100/100 mini-batches, made 3 rows of 1,000 items",
        ),
        (
            progress_of(done=3, failed=97, resumed=2),
            "completed, but 97 of 100 mini-batches failed",
        ),
    ],
)
def test_what_failed_in_a_job_that_completed_is_said_first(progress: Progress, expected: str) -> None:
    ended = job("completed", progress=progress, **TIMES)

    assert headline(ended) == summary(ended, log_hint=str)[0] == expected
    assert repr(RunResult(job=ended)) == f"<RunResult {expected}>"
    assert is_clean(ended) == expected.startswith("completed in")


def test_a_result_says_how_its_job_ended_and_where_everything_is() -> None:
    result = RunResult(job=job("canceled"), logs=Path("/out/logs"), outputs={"scores": Path("/out/scores")})

    assert repr(result) == (
        "<RunResult canceled: 0/0+ mini-batches, 0 rows, 0 items failed; logs='/out/logs', scores='/out/scores'>"
    )


def test_each_failed_item_of_a_completed_job_can_be_looked_up() -> None:
    errors = [ErrorCount(category="RUN_EXCEPTION", message="m", count=1, exception="ValueError", place="score.py:17")]
    ended = job("completed", progress=progress_of(done=100, items_done=999, items_failed=1), errors=errors, **TIMES)

    assert summary(ended, log_hint=lambda log: f"parallelrun job logs job_1 {log}") == [
        "completed, but 1 of 1,000 items failed (0.1 %): ValueError in score.py:17",
        "in 3.2 s: 100/100 mini-batches, 3 rows",
        "each failed item, with its cause: parallelrun job logs job_1 failed_items.csv",
    ]


def test_warnings_about_a_completed_job_say_what_to_do() -> None:
    progress = Progress(scheduled=3, listing_done=True, done=1, failed=2)
    ended = job("completed", progress=progress, warnings=["\x1bodd"])
    assert summary(ended, log_hint=lambda log: f"logs/{log}", retry="parallelrun job retry job_1")[1:] == [
        "in all: 3/3 mini-batches (2 failed), 0 rows",
        "warning: \\x1bodd",
        "2 mini-batches have failed, within the thresholds; why: logs/job_result.txt; "
        "retry: parallelrun job retry job_1",
    ]
    assert summary(ended, log_hint=str)[-1].endswith("why: job_result.txt")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "stream, variables, is_fine, has_color",
    [
        (Terminal(), {"TERM": "xterm"}, False, True),
        (Terminal(), {"TERM": "xterm"}, True, False),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, False, False),
        (Terminal(), {"TERM": "dumb"}, False, False),
        (io.StringIO(), {"TERM": "xterm"}, False, False),
    ],
)
def test_on_a_terminal_the_first_line_stands_out_if_something_failed(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, variables: dict[str, str], is_fine: bool, has_color: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", stream)

    say_summary(["first", "second"], is_clean=is_fine)

    first, second = stream.getvalue().splitlines()
    assert first == ("\x1b[31m\x1b[1mfirst\x1b[0m" if has_color else "first")
    assert second == "second"


def test_a_slow_mini_batch_is_shown_with_its_items_whether_they_are_files_or_rows() -> None:
    rows = MiniBatch(id=9, status="done", items=1418, run_s=0.072, first_input="/data/t3.csv")
    assert _slow(rows) == "mini-batch 9 took 72 ms: 1,418 items, first /data/t3.csv"
    file = MiniBatch(id=1, status="failed", items=1, run_s=5.1e-05, first_input="/data/f1.txt")
    assert _slow(file) == "mini-batch 1 (failed) took 0.051 ms: /data/f1.txt"
