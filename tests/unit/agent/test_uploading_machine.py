"""A try that has written files for a store is done when they are there, and not before."""

from __future__ import annotations

import pytest

from parallelrun_agent.policy.commands import Commit, DropRest, ReportRestLost, UploadOutcome, UploadRest
from parallelrun_agent.policy.outcomes import OutcomeBuilder, WorkerAnswer
from parallelrun_agent.policy.uploading_machine import UploadingJobMachine
from parallelrun_agent.policy.worker import Exit, Worker
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.retry_policy import MiniBatchRetryPolicy
from parallelrun_core.wire.outcome import Failure
from parallelrun_core.wire.states import JobState
from tests.unit.agent.factories import MAX_TRY
from tests.unit.agent.test_machine import delivery, lease, ready, take

FULL = Failure("OUTPUT_UNWRITABLE", "s3://b/out/a can't be written: AccessDenied")


def machine() -> UploadingJobMachine:
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in"})
    builder = OutcomeBuilder("node", generation=0, retries=MiniBatchRetryPolicy(MAX_TRY))
    return UploadingJobMachine(spec, builder, limit=3, lease_s=1000.0, shutdown_s=2.0, stages=False)


@pytest.fixture
def node() -> UploadingJobMachine:
    return machine()


def answered(node: UploadingJobMachine, number: int, *, files: int, worker: Worker | None = None) -> Worker:
    """A worker that has answered for this mini-batch, for which it has set aside so many files."""
    worker = worker or ready(node)
    node.observed(JobState.PROCESSING, 1)
    lease(node, 100.0, delivery(number), ready=10)
    if files:
        worker.in_flight.set_aside(number, files)
    node.answered(worker, WorkerAnswer(number, run_s=1.0), 101.0)
    return worker


def test_what_has_written_no_files_is_committed_at_once(node: UploadingJobMachine) -> None:
    answered(node, 1, files=0)
    (commit,) = take(node, Commit)
    assert commit.outcome.status == "done"


def test_an_outcome_waits_for_its_files(node: UploadingJobMachine) -> None:
    worker = answered(node, 1, files=2)
    assert [*node.commands][-1:] == [UploadOutcome(worker, 1, "s/1")]
    assert not take(node, Commit)
    node.uploaded("s/1", None)
    (commit,) = take(node, Commit)
    assert (commit.outcome.status, commit.worker) == ("done", worker)


def test_a_try_whose_files_cannot_be_uploaded_has_failed(node: UploadingJobMachine) -> None:
    answered(node, 1, files=1)
    node.uploaded("s/1", FULL)
    (commit,) = take(node, Commit)
    assert (commit.outcome.status, commit.outcome.failure, commit.outcome.length) == ("retry", FULL, 0)


def test_files_of_a_try_that_failed_are_not_uploaded(node: UploadingJobMachine) -> None:
    worker = ready(node)
    node.observed(JobState.PROCESSING, 1)
    lease(node, 100.0, delivery(1), ready=10)
    worker.in_flight.set_aside(1, 3)
    node.answered(worker, WorkerAnswer(1, failure=Failure("RUN_EXCEPTION", "no")), 101.0)
    assert not [each for each in node.commands if isinstance(each, UploadOutcome)]
    assert len(take(node, Commit)) == 1


def test_an_upload_of_an_earlier_session_is_forgotten(node: UploadingJobMachine) -> None:
    answered(node, 1, files=1)
    node.check_time(5000.0)  # its lease has run out
    take(node, Commit)
    node.uploaded("s/1", None)
    assert not take(node, Commit)


def test_a_worker_cannot_set_aside_for_what_it_does_not_run(node: UploadingJobMachine) -> None:
    worker = ready(node)
    with pytest.raises(LookupError):
        worker.in_flight.set_aside(7, 1)


def test_nothing_more_is_leased_while_the_uploads_are_far_behind(node: UploadingJobMachine) -> None:
    worker = ready(node)
    for number in range(3):
        answered(node, number, files=1, worker=worker)
    node.observed(JobState.PROCESSING, 10)
    turn = node.next_turn(102.0)
    assert turn is None or not turn.want
    node.uploaded("s/0", None)
    turn = node.next_turn(102.0)
    assert turn is not None
    assert turn.want == 1


@pytest.mark.parametrize("code, command", [(0, UploadRest), (1, DropRest)])
def test_what_a_worker_leaves_is_uploaded_if_it_has_ended_in_order(
    node: UploadingJobMachine, code: int, command: type[object]
) -> None:
    worker = answered(node, 1, files=0)
    node.drain(10.0, 102.0)
    node.caught_up(worker, 102.0)
    node.exited(worker, Exit(code), 103.0)
    assert len(take(node, command)) == 1


def test_a_node_leaves_when_all_that_its_workers_have_left_is_there(node: UploadingJobMachine) -> None:
    worker = answered(node, 1, files=0)
    (commit,) = take(node, Commit)
    node.stored(commit.outcome, b"", 101.0)
    lease(node, 101.5)
    node.drain(10.0, 102.0)
    node.caught_up(worker, 102.0)
    node.exited(worker, Exit(0), 103.0)
    turn = node.next_turn(500.0)
    assert turn is not None
    assert turn.mode == "stay"
    node.rest_uploaded(worker.process)
    turn = node.next_turn(500.0)
    assert turn is not None
    assert turn.mode == "leave"


def test_a_node_that_is_told_to_stop_does_not_wait_for_a_store_that_is_away(node: UploadingJobMachine) -> None:
    worker = answered(node, 1, files=1)
    take(node, Commit)
    node.drain(10.0, 102.0)
    node.caught_up(worker, 102.0)
    node.exited(worker, Exit(0), 103.0)
    node.check_time(111.0)
    assert not node.deliveries.reports
    node.check_time(112.5)
    assert node.deliveries.reports.returns == [(1, "s/1")]
    turn = node.next_turn(112.5)
    assert turn is not None
    assert turn.mode == "leave"
    node.uploaded("s/1", None)
    assert not take(node, Commit)


def test_what_a_worker_has_left_is_reported_if_it_is_given_up(node: UploadingJobMachine) -> None:
    worker = answered(node, 1, files=0)
    node.drain(10.0, 102.0)
    node.caught_up(worker, 102.0)
    node.exited(worker, Exit(0), 103.0)
    node.check_time(111.0)
    assert not take(node, ReportRestLost)
    node.check_time(112.5)
    (report,) = take(node, ReportRestLost)
    assert (report.process, "told to stop" in report.why) == (worker.process, True)
    node.check_time(113.0)
    assert not take(node, ReportRestLost)


def test_what_a_worker_has_left_is_reported_if_the_lease_is_lost(node: UploadingJobMachine) -> None:
    worker = answered(node, 1, files=0)
    node.drain(9000.0, 102.0)
    node.caught_up(worker, 102.0)
    node.exited(worker, Exit(0), 103.0)
    node.check_time(5000.0)
    (report,) = take(node, ReportRestLost)
    assert (report.process, "lost its lease" in report.why) == (worker.process, True)
