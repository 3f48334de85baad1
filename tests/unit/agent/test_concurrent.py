"""What follows, in an agent, from several mini-batches that run at once in a worker."""

from __future__ import annotations

import pytest

from parallelrun_agent.policy.concurrent import Concurrency, ConcurrentInFlight
from parallelrun_agent.policy.deliveries import Deliveries
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.worker import Worker
from parallelrun_core.spec.retry_policy import MiniBatchRetryPolicy
from parallelrun_core.wire.leasing import Delivery


def delivery(number: int) -> Delivery:
    return Delivery(number, f"s/{number}", 0, False, b"")


def filled(count: int, *, now: float = 0.0) -> ConcurrentInFlight:
    in_flight = ConcurrentInFlight()
    in_flight.push([Assignment(delivery(number)) for number in range(count)], now)
    return in_flight


def test_concurrent_answers_come_in_any_order_and_one_for_another_worker_is_none() -> None:
    in_flight = filled(4)
    assert [in_flight.answered(number, 1.0).delivery.mini_batch for number in (2, 0, 3, 1)] == [2, 0, 3, 1]
    with pytest.raises(LookupError, match="mini-batch 2, which it does not have"):
        in_flight.answered(2, 1.0)


def test_concurrent_mini_batches_that_were_begun_are_all_charged() -> None:
    in_flight = filled(4)
    assert [each.delivery.mini_batch for each in in_flight.take_back([3])] == [3]
    begun, rest = in_flight.died(running=True)
    assert [each.delivery.mini_batch for each, _ in begun] == [0, 1, 2]
    assert rest == []


def test_concurrent_mini_batches_hang_later_than_their_worker_cancels_one() -> None:
    in_flight = filled(2, now=0.0)
    in_flight.push([Assignment(delivery(2))], 50.0)
    assert in_flight.in_run_s(now=60.0) == 55.0
    in_flight.answered(0, 60.0)
    in_flight.answered(1, 60.0)
    assert in_flight.in_run_s(now=60.0) == 5.0


def test_concurrent_second_delivery_never_runs_beside_the_first() -> None:
    deliveries = Deliveries(MiniBatchRetryPolicy(3))
    workers = [*full_workers(3, width=8), Worker("process001", "", 0.0, ConcurrentInFlight())]
    workers[1].pass_init()
    twin, new = Delivery(1, "t/1", 0, False, b""), Delivery(9, "t/9", 0, False, b"")
    deliveries.receive([Assignment(twin), Assignment(new)])
    [given] = deliveries.hand_out_twins(workers, 8, 0.0)
    assert (given.worker, [each.delivery.token for each in given.assignments]) == (workers[1], ["t/1"])
    assert deliveries.unassigned() == ["t/9"]

    deliveries.receive([Assignment(Delivery(1, "u/1", 0, False, b""))])
    assert deliveries.hand_out_twins(workers, 8, 0.0) == []
    assert deliveries.reports.returns == [(1, "u/1")]


def full_workers(count: int, *, width: int = 0, now: float = 0.0) -> list[Worker]:
    worker = Worker("process000", "", 0.0, filled(count, now=now))
    worker.in_flight.width = width or count
    worker.pass_init()
    return [worker]


def throughput(in_flight: int, *, server: int) -> float:
    """Answers per second of a service that answers so many at a time, each after 0.1 s."""
    return min(in_flight, server) / 0.1


@pytest.mark.parametrize("server", [6, 40, 200, 5000])
def test_concurrency_grows_while_throughput_does_and_not_far_beyond(server: int) -> None:
    policy, now = Concurrency(None), 100.0
    for _ in range(600):
        workers = full_workers(policy.width, now=now)
        policy.wanted(workers, 0, now)
        answers = throughput(policy.width, server=server) * 0.5
        for _ in range(int(answers)):
            policy.observe(0.1)
        now += 0.5
    assert min(server, 1024) * 0.6 <= policy.width <= max(8, 1.5 * 1.5 * server)
    assert policy.width <= 1024


def test_concurrency_learns_nothing_from_workers_that_lack_work() -> None:
    policy, now = Concurrency(None), 100.0
    for _ in range(100):
        policy.wanted(full_workers(1, width=8, now=now), 0, now)
        policy.observe(0.1)
        now += 0.5
    assert policy.width == 8


def test_concurrency_that_is_given_is_leased_at_once() -> None:
    policy = Concurrency(32)
    assert policy.wanted(full_workers(2, width=32), 5, 0.0) == 25
    assert policy.nap_s([32]) == 0.0


@pytest.mark.parametrize("run_s,depth", [(0.01, 64), (0.2, 48), (5.0, 32)])
def test_concurrency_lets_only_short_mini_batches_wait_in_the_worker(run_s: float, depth: int) -> None:
    policy = Concurrency(32)
    assert (policy.width, policy.depth) == (32, 32), "nobody knows yet how long they take"
    for _ in range(100):
        policy.observe(run_s)
    assert (policy.width, policy.depth) == (32, depth)
    assert policy.wanted(full_workers(32), 0, 0.0) == depth - 32


def test_concurrent_mini_batches_that_wait_in_a_silent_worker_are_taken_back_once() -> None:
    in_flight = filled(6, now=1.0)
    in_flight.width = 4
    assert not in_flight.has_unread(1.2)
    assert in_flight.room(8, 1.2) == 2
    assert in_flight.has_unread(1.5)
    assert in_flight.room(8, 1.5) == 0
    in_flight.take_back([4, 5])
    assert not in_flight.has_unread(1.5)
    in_flight.width = 4
    assert not in_flight.has_unread(1.5), "all of them run"
