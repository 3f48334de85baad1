"""What is staged ahead of workers, and how long one waited for it (Load Seconds, which run() is not charged)."""

from __future__ import annotations

from collections import deque

import pytest

from parallelrun_agent.policy.commands import Command
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.look_ahead import LookAhead
from parallelrun_agent.policy.staged_deliveries import StagedDeliveries
from parallelrun_agent.policy.worker import Worker
from parallelrun_core.spec.retry_policy import MiniBatchRetryPolicy
from parallelrun_core.wire.leasing import Delivery


@pytest.fixture
def idle() -> Worker:
    return Worker("process000", "s.process000", started=990.0)


def waited_s(worker: Worker, *, staged_at: float, elapsed_s: float) -> float:
    deliveries = StagedDeliveries(deque[Command](), MiniBatchRetryPolicy(3))
    one = Delivery(0, "s/0", 0, False, b"")
    deliveries.receive([Assignment(one)])
    assignment = deliveries.staged(one.token, elapsed_s, staged_at)
    assert assignment is not None
    deliveries.backlog.append(assignment)
    [given] = deliveries.hand_out([worker], 1, staged_at + 0.1)
    return given.assignments[0].waited_s


def test_a_new_worker_has_waited_since_the_staging_began(idle: Worker) -> None:
    assert waited_s(idle, staged_at=1000.0, elapsed_s=2.0) == 2.0


def test_a_worker_that_became_idle_later_has_waited_since_then(idle: Worker) -> None:
    idle.in_flight.head_since = 999.5
    assert waited_s(idle, staged_at=1000.0, elapsed_s=2.0) == 0.5


def test_a_worker_that_became_idle_when_all_was_there_has_not_waited(idle: Worker) -> None:
    idle.in_flight.head_since = 1000.05
    assert waited_s(idle, staged_at=1000.0, elapsed_s=2.0) == 0.0


def test_no_more_is_begun_than_an_agent_can_between_two_renewals() -> None:
    """Very short mini-batches of very many files: a worker could have hundreds of them in flight."""
    deliveries, look_ahead = StagedDeliveries(deque[Command](), MiniBatchRetryPolicy(3)), LookAhead(enabled=True)
    look_ahead.observe(1e-6)
    workers = [Worker(f"process{number:03d}", "", started=990.0) for number in range(2)]
    first = Delivery(0, "s/0", 0, False, b"")
    deliveries.receive([Assignment(first)])
    deliveries.staged(first.token, 0.5, 1000.0, files=100)

    assert deliveries.wanted(look_ahead, workers, 100_000, 1000.0) == 4
    deliveries.staged("unknown", 0.5, 1000.0, files=1)
    assert deliveries.wanted(look_ahead, workers, 100_000, 1000.0) == 4


def test_mini_batches_of_one_file_are_staged_by_the_hundred() -> None:
    deliveries, look_ahead = StagedDeliveries(deque[Command](), MiniBatchRetryPolicy(3)), LookAhead(enabled=True)
    look_ahead.observe(1e-6)
    workers = [Worker(f"process{number:03d}", "", started=990.0) for number in range(2)]

    assert deliveries.wanted(look_ahead, workers, 100_000, 1000.0) == 256


def leased(
    *, run_s: float = 0.05, stage_s: float = 0.2, ready: int = 1000, nodes: int = 1, seen: int = 100, waiting: int = 0
) -> int:
    """How many a node with two idle workers has ahead of them, beyond those that they can have in flight.

    Args:
        seen: how many it has staged and run before.
        waiting: how many it has leased that no worker has yet.
    """
    deliveries, look_ahead = StagedDeliveries(deque[Command](), MiniBatchRetryPolicy(3)), LookAhead(enabled=True)
    deliveries.nodes = nodes
    workers = [Worker(f"process{number:03d}", "", started=990.0) for number in range(2)]
    for number in range(seen):
        one = Delivery(0, f"s/{number}", 0, False, b"")
        deliveries.receive([Assignment(one)])
        deliveries.staged(one.token, stage_s, 1000.0)
        if run_s:
            look_ahead.observe(run_s)
    deliveries.receive(Assignment(Delivery(0, f"s/waits-{number}", 0, False, b"")) for number in range(waiting))
    return waiting + deliveries.wanted(look_ahead, workers, ready, 1000.0) - 2 * look_ahead.depth


def test_as_many_are_staged_as_workers_run_meanwhile() -> None:
    assert leased(run_s=0.05, stage_s=0.2) == 2 * 5
    assert leased(run_s=60.0, stage_s=0.2) == 2 * 1


def test_the_first_one_tells_how_long_staging_takes() -> None:
    assert leased(run_s=0.05, stage_s=0.2, seen=1) == 2 * 5


def test_while_nobody_knows_how_long_one_runs_few_are_taken() -> None:
    assert leased(run_s=0.0, stage_s=5.0) == 2 * 2


@pytest.mark.parametrize("ready, nodes, expected", [(8, 1, 8), (8, 2, 4), (8, 0, 2), (8, 9, 0), (1000, 9, 10)])
def test_a_node_takes_no_more_than_its_share(ready: int, nodes: int, expected: int) -> None:
    assert leased(ready=ready, nodes=nodes) == expected


def test_the_first_node_of_a_job_leaves_something_for_those_that_come() -> None:
    """run() may take hours: a second one joins only if something is ready then."""
    assert leased(run_s=0.0, ready=8, nodes=1) == 2


def test_what_a_node_has_leased_already_is_part_of_its_share() -> None:
    """Or one that is alone would not take the last ones until it had run most of those before."""
    assert leased(ready=4, nodes=1, waiting=6) == 4 + 6
    assert leased(ready=4, nodes=2, waiting=2) == (4 + 2) // 2


def held_up(*, running_s: float, backlog: int, ready: int, nodes: int, stage_s: float = 0.2, run_s: float = 0.0) -> int:
    """How many a node with two workers keeps of its backlog, when both have run something for so long.

    Args:
        run_s: how long the ones before took; 0: there were none.
    """
    deliveries, look_ahead = StagedDeliveries(deque[Command](), MiniBatchRetryPolicy(3)), LookAhead(enabled=True)
    if run_s:
        look_ahead.observe(run_s)
    deliveries.nodes = nodes
    workers = [Worker(f"process{number:03d}", "", started=990.0) for number in range(2)]
    for number in range(backlog + 2):
        one = Delivery(number, f"s/{number}", 0, False, b"")
        deliveries.receive([Assignment(one)])
        staged = deliveries.staged(one.token, stage_s, 1000.0)
        assert staged is not None
        deliveries.queue(staged)
    deliveries.hand_out(workers, 1, 1000.0)

    for check in range(3):  # as many as there may be before a turn reports what is given back
        deliveries.give_back_held_up(look_ahead, workers, ready, 1000.0 + running_s + check / 20)

    returned = [mini_batch for mini_batch, _ in deliveries.reports.returns]
    assert returned == sorted(range(backlog + 2), reverse=True)[: len(returned)], "the last ones go first"
    if returned:
        deliveries.acknowledged(deliveries.reports)
        wanted = deliveries.wanted(look_ahead, workers, ready + len(returned), 1000.0 + running_s)
        assert wanted == 0, "nor are taken again"
    return len(deliveries.backlog)


def test_what_waits_for_long_runs_is_given_back_when_there_is_nothing_for_others() -> None:
    assert held_up(running_s=3600.0, backlog=4, ready=0, nodes=2) == 0
    assert held_up(running_s=3600.0, backlog=4, ready=0, nodes=0) == 0, "also while nobody knows of other nodes"
    assert held_up(running_s=3600.0, backlog=1, ready=0, nodes=1) == 0, "one that comes finds it"


def test_a_node_keeps_its_share_of_what_waits_for_long_runs() -> None:
    """Of 10 that no worker has, each of two nodes has 5, of which its workers take two."""
    assert held_up(running_s=3600.0, backlog=6, ready=4, nodes=2, run_s=60.0) == 3


def test_long_runs_after_short_ones_are_long() -> None:
    """Nothing is leased for them that would only be given back again."""
    assert held_up(running_s=3600.0, backlog=8, ready=0, nodes=1, run_s=0.01) == 6
    assert held_up(running_s=3600.0, backlog=8, ready=0, nodes=2, run_s=0.01) == 2


def test_what_is_staged_stays_while_there_is_more_than_workers_take() -> None:
    assert held_up(running_s=3600.0, backlog=2, ready=1000, nodes=2) == 2


def test_what_is_staged_stays_while_runs_are_short_or_staging_takes_as_long() -> None:
    assert held_up(running_s=4.0, backlog=2, ready=0, nodes=1) == 2
    assert held_up(running_s=60.0, backlog=2, ready=0, nodes=1, stage_s=10.0) == 2


def test_short_mini_batches_are_leased_many_at_a_time() -> None:
    """A call of Redis for each that a worker has answered would cost more than the mini-batch."""
    run_s = 0.002
    look_ahead = LookAhead(enabled=True)
    look_ahead.observe(run_s)
    whole = 2 * look_ahead.depth + leased(run_s=run_s, stage_s=0.001)
    few = 2 * look_ahead.depth // 4

    def more(waiting: int) -> int:
        return leased(run_s=run_s, stage_s=0.001, waiting=waiting) + 2 * look_ahead.depth - waiting

    assert more(whole - few + 1) == 0
    assert more(whole - few) == few
    assert more(few - 1) > few
