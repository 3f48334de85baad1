"""What a node knows of a mini-batch whose items are run apart, and what becomes of it in the end."""

from __future__ import annotations

import pytest

from parallelrun_agent.policy.commands import Commit, ReportFailure
from parallelrun_agent.policy.isolation import Isolation, PartEvent, most_calls
from parallelrun_agent.policy.job_machine import JobMachine
from parallelrun_agent.policy.outcomes import WorkerAnswer
from parallelrun_core.folder.decided import Decided
from parallelrun_core.wire.leasing import Delivery, Turn
from parallelrun_core.wire.message import encode_files
from parallelrun_core.wire.outcome import Failure
from parallelrun_core.wire.states import JobState
from tests.unit.agent.factories import machine
from tests.unit.core.factories import failed, outcome

RAISED = Failure("RUN_EXCEPTION", "ValueError: bad", '  File "score.py", line 17, in run\n')
DIED = Failure("EXITED", "The worker exited with code 5 during run().")


def isolation(items: int = 8) -> Isolation:
    return Isolation.of(failed(3, items=items, failure=RAISED), RAISED)


def ran(of: Isolation, first: int, items: int, failure: Failure | None = None) -> None:
    of.heard(PartEvent((first, items), has_begun=True), "p0", 5.0)
    of.heard(PartEvent((first, items), has_begun=False, run_s=0.1, failure=failure), "p0", 6.0)


def test_isolation_loses_the_guilty_items_alone() -> None:
    apart = isolation()
    ran(apart, 0, 4)
    ran(apart, 4, 2, RAISED)
    ran(apart, 4, 1, RAISED)
    ran(apart, 5, 1)
    ran(apart, 6, 2)
    end = apart.outcome(outcome(3, items=8, rows=7), "{}")
    assert (end.status, end.rows, [(each.first, each.items) for each in end.lost]) == ("done", 7, [(4, 1)])
    assert [(part.first, part.items) for part in end.parts] == [(0, 8), (0, 4), (4, 2), (4, 1), (5, 1), (6, 2)]
    decided = Decided()
    decided.accept(end)
    assert (decided.items_done, decided.items_failed, decided.items_isolated, decided.items_short) == (7, 1, 1, 0)


def test_isolation_tells_neighbors_that_failed_alone_from_each_other() -> None:
    apart = isolation()
    ran(apart, 0, 4)
    ran(apart, 4, 2, RAISED)
    ran(apart, 4, 1, RAISED)
    ran(apart, 5, 1, DIED)
    ran(apart, 6, 2, RAISED)
    end = apart.outcome(outcome(3, items=8, rows=4), "{}")
    assert [(each.first, each.items, each.failure.category) for each in end.lost] == [
        (4, 1, "RUN_EXCEPTION"), (5, 1, "EXITED"), (6, 2, "RUN_EXCEPTION"),
    ]  # fmt: skip


def test_isolation_goes_on_after_a_death_without_the_rows_of_the_dead() -> None:
    apart = isolation()
    ran(apart, 0, 4)
    apart.heard(PartEvent((4, 2), has_begun=True), "p0", 5.0)
    assert apart.died(DIED, "p0", 0.5)
    assert apart.asked(1) == b'{"kind":1,"failed":[[4,2]],"calls":62}\n'
    assert not apart.died(DIED, "p1", 0.5), "before it has begun anything, it can't be said what kills"
    ran(apart, 6, 2)
    end = apart.outcome(outcome(3, items=8, rows=2), "{}")
    assert [(each.first, each.items) for each in end.lost] == [(0, 4), (4, 2)], "rows of the dead worker are gone"


def test_isolation_of_a_script_that_aggregates_fails_as_a_whole_and_says_why() -> None:
    apart = isolation()
    apart.heard(PartEvent((0, 4), has_begun=True), "p0", 5.0)
    uneven = Failure("RUN_EXCEPTION", "Uneven: run() returned 1 row for 4 items")
    end = apart.outcome(failed(3, items=8, failure=uneven), "{}")
    assert (end.status, end.rows, end.lost) == ("failed", 0, ())
    assert end.failure is not None
    assert end.failure.message == (
        "ValueError: bad (Its items could not be run apart: run() returned 1 row for 4 items)"
    )


def test_isolation_in_which_nothing_goes_well_is_the_failure_that_it_was() -> None:
    apart = isolation(2)
    ran(apart, 0, 1, RAISED)
    ran(apart, 1, 1, DIED)
    end = apart.outcome(outcome(3, items=2, rows=0), "{}")
    assert (end.status, end.failure, [each.items for each in end.lost]) == ("failed", RAISED, [1, 1])
    decided = Decided()
    decided.accept(end)
    assert (decided.failed, decided.items_failed) == (1, 2)


@pytest.mark.parametrize("items, calls", [(2, 64), (256, 64), (257, 65), (10_000, 107)])
def test_isolation_is_bounded_by_the_larger_of_64_and_8_log2_of_its_items(items: int, calls: int) -> None:
    assert most_calls(items) == calls
    assert isolation(items).calls_left == calls


def test_isolation_trusts_no_worker_that_ends_what_it_has_not_begun() -> None:
    with pytest.raises(LookupError):
        isolation().heard(PartEvent((0, 4), has_begun=False), "p0", 5.0)


def fail_once(node: JobMachine, mini_batch: int) -> int:
    """Have a worker fail with a mini-batch of four items, and with each of its parts; returns the calls for parts."""
    (worker,) = node.pool.available()
    node.observed(JobState.PROCESSING, 1)
    turn = node.next_turn(1.0)
    assert turn is not None
    lease = Delivery(mini_batch, f"s/{mini_batch}", 1, False, b"")
    node.answered_turn(turn, Turn(JobState.PROCESSING, deliveries=(lease,)), sent_at=1.0, now=1.0)
    calls = 0
    while worker.in_flight:
        head = worker.in_flight.assignments[0]
        head.hand_over(4, 1.0, loads=head.isolation is not None)
        if head.isolation is not None:
            for first in range(4):
                worker.in_flight.part(mini_batch, PartEvent((first, 1), has_begun=True), worker.process, 1.0, 1.0)
                worker.in_flight.part(mini_batch, PartEvent((first, 1), False, 0.1, RAISED), worker.process, 1.0, 1.0)
                calls += 1
        failure = None if head.isolation is not None else RAISED
        node.answered(worker, WorkerAnswer(mini_batch, items=4, failure=failure), 1.0)
        node.caught_up(worker, 1.0)
    (commit,) = [each for each in node.commands if isinstance(each, Commit)]
    assert commit.outcome.status == "failed"
    node.commands.clear()
    return calls


def test_isolation_ends_on_a_node_where_nothing_ever_goes_well() -> None:
    node = machine(on_failure="isolate")
    node.pool.got_ready(node.worker_started("p0", "s.p0", 0.0))
    assert [fail_once(node, number) for number in range(5)] == [4, 4, 4, 0, 0]


def run_whole(node: JobMachine, mini_batch: int, failure: Failure | None, now: float = 1.0) -> JobMachine:
    (worker,) = node.pool.available()
    node.observed(JobState.PROCESSING, 1)
    turn = node.next_turn(now)
    assert turn is not None
    lease = Delivery(mini_batch, f"s/{mini_batch}", 1, False, b"")
    node.answered_turn(turn, Turn(JobState.PROCESSING, ready=5, deliveries=(lease,)), sent_at=now, now=now)
    head = worker.in_flight.assignments[0]
    assert (head.delivery.mini_batch, head.isolation) == (mini_batch, None), "another one is run apart"
    node.commands.clear()
    head.hand_over(4, now, loads=False)
    node.answered(worker, WorkerAnswer(mini_batch, items=4, failure=failure), now)
    return node


def test_isolation_waits_until_the_leader_has_looked_whether_all_fails_alike() -> None:
    node = machine(on_failure="isolate", fail_fast=True)
    node.pool.got_ready(node.worker_started("p0", "s.p0", 0.0))
    (worker,) = node.pool.available()
    for number in range(20):
        (command,) = run_whole(node, number, RAISED).commands
        assert isinstance(command, ReportFailure)
        assert command.to_leader
        node.caught_up(worker, 1.0)
        assert not worker.in_flight
    node.observed(JobState.PROCESSING, 0)
    node.check_time(2.9)
    assert not worker.in_flight
    node.check_time(3.1)  # nothing else is to be done, and the leader had its time
    assert worker.in_flight.assignments[0].isolation is not None


def test_isolation_begins_when_something_succeeds() -> None:
    node = machine(on_failure="isolate", fail_fast=True)
    node.pool.got_ready(node.worker_started("p0", "s.p0", 0.0))
    (worker,) = node.pool.available()
    for number in range(20):
        run_whole(node, number, RAISED)
        node.caught_up(worker, 1.0)
    run_whole(node, 20, None)
    node.caught_up(worker, 1.0)
    assert worker.in_flight.assignments[0].isolation is not None


def test_isolation_of_a_few_waits_for_nobody() -> None:
    node = machine(on_failure="isolate", fail_fast=True)
    node.pool.got_ready(node.worker_started("p0", "s.p0", 0.0))
    (worker,) = node.pool.available()
    run_whole(node, 0, RAISED)
    node.observed(JobState.PROCESSING, 0)
    node.caught_up(worker, 1.0)
    assert worker.in_flight.assignments[0].isolation is not None


GONE = Failure("INPUT_UNREADABLE", "s3://bucket/in/2 can't be read: NoSuchKey")


def staged_without(missing: dict[int, Failure], on_failure: str = "isolate") -> JobMachine:
    """Have a mini-batch of four objects, of which some can't be brought to the node, after its last try."""
    node = machine(stages=True, on_failure=on_failure)
    node.pool.got_ready(node.worker_started("p0", "s.p0", 0.0))
    node.observed(JobState.PROCESSING, 1)
    turn = node.next_turn(1.0)
    assert turn is not None
    lease = Delivery(0, "s/0", 1, False, encode_files([(b"s3://bucket/in", [b"0", b"1", b"2", b"3"])], 4))
    node.answered_turn(turn, Turn(JobState.PROCESSING, deliveries=(lease,)), sent_at=1.0, now=1.0)
    node.commands.clear()
    node.staged("s/0", 0.1, GONE if missing else None, 1.1, 4, missing=missing)
    return node


def test_isolation_runs_what_is_here_if_another_item_can_not_be_brought() -> None:
    node = staged_without({2: GONE})
    (worker,) = node.pool.available()
    (head,) = worker.in_flight.assignments
    apart = head.isolation
    assert apart is not None
    assert apart.asked(3).startswith(b'{"kind":3,"failed":[[2,1]]')
    ran(apart, 0, 2)
    ran(apart, 3, 1)
    node.answered(worker, WorkerAnswer(0, items=4, rows=3), 2.0)
    (commit,) = [each for each in node.commands if isinstance(each, Commit)]
    assert (commit.outcome.status, commit.outcome.rows) == ("done", 3)
    assert [(each.first, each.items, each.failure) for each in commit.outcome.lost] == [(2, 1, GONE)]


@pytest.mark.parametrize("missing, on_failure", [(dict.fromkeys(range(4), GONE), "isolate"), ({2: GONE}, "mini_batch")])
def test_isolation_runs_nothing_if_no_item_can_be_brought_or_nobody_asks(
    missing: dict[int, Failure], on_failure: str
) -> None:
    (commit,) = [each for each in staged_without(missing, on_failure).commands if isinstance(each, Commit)]
    assert (commit.outcome.status, commit.outcome.failure, commit.outcome.items) == ("failed", GONE, 4)
