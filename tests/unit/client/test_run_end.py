"""What a run on this machine hands its caller, in Python: a result, or an error that says what it has left."""

from pathlib import Path

import pytest

from parallelrun import JobCanceled, JobFailed, RunResult
from parallelrun.embedded.local_run import RunEnd
from parallelrun.models import Failure, Job

HINT = "to run only the rest, into another folder, add resume_from='/out'"


def end_of(state: str, *, interrupt: KeyboardInterrupt | None = None, resume_hint: str = "") -> RunEnd:
    failure = (
        Failure(code="init_failed", summary="init() failed.", log="user/error/a.txt") if state == "failed" else None
    )
    result = RunResult(job=Job(id="job_1", state=state, failure=failure), logs=Path("/out/logs"))
    return RunEnd(result=result, interrupt=interrupt, resume_hint=resume_hint)


def test_a_completed_job_has_a_result() -> None:
    end = end_of("completed")

    assert end.completed() is end.result


def test_a_failed_job_is_an_error_with_its_log_and_what_was_left() -> None:
    with pytest.raises(JobFailed, match=r"log: /out/logs/user/error/a\.txt") as caught:
        end_of("failed", resume_hint=HINT).completed()

    assert caught.value.job.state == "failed"
    assert caught.value.__notes__ == ["logs: /out/logs", HINT]


def test_a_job_that_somebody_else_canceled_is_an_error() -> None:
    with pytest.raises(JobCanceled) as caught:
        end_of("canceled").completed()

    assert caught.value.__notes__ == ["logs: /out/logs"]


def test_an_interrupt_goes_on_with_notes_on_what_was_left() -> None:
    interrupt = KeyboardInterrupt("SIGTERM")

    with pytest.raises(KeyboardInterrupt) as caught:
        end_of("canceled", interrupt=interrupt, resume_hint=HINT).completed()

    assert caught.value is interrupt
    assert caught.value.__notes__ == ["logs: /out/logs", HINT]
