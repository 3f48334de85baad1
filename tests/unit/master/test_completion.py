"""When the processing of a job is complete, and how it ends."""

from __future__ import annotations

from typing import Any

import pytest

from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.outcome import Failure, InitFailure
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master.policy.completion import Completion
from parallelrun_master.policy.error_groups import ErrorGroups
from tests.unit.master.factories import spec


def completion(progress: Progress, **fields: Any) -> Completion:
    return Completion(spec(**fields), progress, ErrorGroups(), 0.0)


@pytest.mark.parametrize("progress, has_run", [
    (Progress(), False), (Progress(done=2, resumed=2), False),
    (Progress(done=1), True), (Progress(failed=1), True), (Progress(retried=1), True),
    (Progress(done=3, resumed=2), True),
])  # fmt: skip
def test_a_worker_that_hangs_in_init_fails_no_job_that_ran_under_an_earlier_leader(
    progress: Progress, has_run: bool
) -> None:
    job = completion(progress)
    job.init_failed(InitFailure("n", "process000", Failure("INIT_TIMEOUT", "too long")), 2, 1.0)
    assert (job.end() is None) is has_run


def test_a_worker_that_hangs_in_init_fails_no_job_that_another_one_works_for() -> None:
    job = completion(Progress())
    job.got_through_init()
    job.init_failed(InitFailure("n", "process001", Failure("INIT_TIMEOUT", "too long")), 2, 1.0)
    assert job.end() is None


def test_the_first_reason_to_fail_stays() -> None:
    job = completion(Progress())
    assert job.end() is None
    first = JobFailure(code="INPUTS_CHANGED", summary="first")
    job.fail(None)
    job.fail(first)
    job.fail(JobFailure(code="INPUT_UNREADABLE", summary="second"))
    assert job.end() == (JobState.FAILED, first)
    assert job.end() == (JobState.FAILED, first)


def test_a_job_whose_workers_never_get_ready_fails_with_what_they_said() -> None:
    job = completion(Progress())
    while job.end() is None:
        job.init_failed(InitFailure("node", "process000", Failure("INIT_EXCEPTION", "no model")), slots=2, now=1.0)
    end = job.end()
    assert end is not None
    assert end.failure is not None
    assert end.failure.code == "INIT_FAILED"
    assert "no model" in end.failure.first_cause


def test_no_more_runs_than_is_left() -> None:
    """Agents tell what they hold a moment later than what they have done."""
    progress = Progress(scheduled=8, listing_done=True, done=3)
    completion(progress).refresh(1.0, nodes=1, running=9, lost=0)
    assert progress.running == 5


def test_time_that_redis_was_away_is_no_stall() -> None:
    job = completion(Progress(), first_task_creation_timeout=10)
    job.published(1, 0.0)
    job.stood_still(9.0)
    job.refresh(18.0, nodes=1, running=0, lost=2)
    assert job.end() is None
    job.refresh(20.0, nodes=1, running=0, lost=0)
    end = job.end()
    assert end is not None
    assert end.failure is not None
    assert end.failure.code == "NO_PROGRESS"


@pytest.mark.parametrize("scheduled, empty, code", [(0, 0, "EMPTY_INPUT"), (3, 3, "EMPTY_INPUT"), (3, 2, "NO_ROWS")])
def test_a_job_without_a_row_fails(scheduled: int, empty: int, code: str) -> None:
    job = completion(Progress(done=scheduled, empty=empty))
    job.scheduled(scheduled, scheduled, all_of_them=True)
    end = job.end()
    assert end is not None
    assert end.failure is not None
    assert end.failure.code == code
    assert code != "EMPTY_INPUT" or end.failure.summary == "There is nothing to process in /in: no file, or no row."
    none_wanted = completion(Progress(done=3), output_action="summary_only")
    none_wanted.scheduled(3, 3, all_of_them=True)
    assert none_wanted.end() == (JobState.FINALIZING, None)


def test_a_job_of_which_too_much_failed_is_never_finalized() -> None:
    job = completion(Progress(done=1, failed=2, rows=1, items_failed=2), error_threshold=1)
    job.scheduled(3, 3, all_of_them=True)
    end = job.end()
    assert end is not None
    assert end.state is JobState.FAILED


@pytest.mark.parametrize("running", [0, 1])
def test_init_failures_in_a_row_end_a_job_only_while_nobody_works(running: int) -> None:
    """One bad node fails as often as it likes while all the good ones are in long mini-batches."""
    progress = Progress(scheduled=10)
    completion = Completion(spec(), progress, ErrorGroups(), 0.0)
    died = InitFailure("bad", "process000", Failure("INIT_DIED", "The worker ended in init(), code 1."))
    for number in range(100):
        completion.refresh(0.1 * number, nodes=2, running=running, lost=0)
        completion.init_failed(died, 4, 0.1 * number)
    end = completion.end()
    assert (end is None) == bool(running)
