"""What follows, in an agent, from several mini-batches that run at once in a worker."""

from __future__ import annotations

import pytest

from parallelrun_agent.policy.concurrent import Concurrency, ConcurrentInFlight
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.worker import Worker
from parallelrun_core.wire.leasing import Delivery


def delivery(number: int) -> Delivery:
    return Delivery(number, f"s/{number}", 0, 0, b"")


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


def full_workers(depth: int) -> list[Worker]:
    worker = Worker("process000", "", 0.0, filled(depth))
    worker.pass_init()
    return [worker]


def throughput(in_flight: int, *, server: int) -> float:
    """Answers per second of a service that answers so many at a time, each after 0.1 s."""
    return min(in_flight, server) / 0.1


@pytest.mark.parametrize("server", [6, 40, 200, 5000])
def test_concurrency_grows_while_throughput_does_and_not_far_beyond(server: int) -> None:
    policy, now = Concurrency(None), 100.0
    for _ in range(600):
        workers = full_workers(policy.depth)
        policy.wanted(workers, 0, now)
        answers = throughput(policy.depth, server=server) * 0.5
        for _ in range(int(answers)):
            policy.observe(0.1)
        now += 0.5
    assert min(server, 1024) * 0.6 <= policy.depth <= max(8, 1.5 * 1.5 * server)
    assert policy.depth <= 1024


def test_concurrency_learns_nothing_from_workers_that_lack_work() -> None:
    policy, now = Concurrency(None), 100.0
    for _ in range(100):
        policy.wanted(full_workers(1), 0, now)
        policy.observe(0.1)
        now += 0.5
    assert policy.depth == 8


def test_concurrency_that_is_given_is_leased_at_once() -> None:
    policy = Concurrency(32)
    assert policy.wanted(full_workers(2), 5, 0.0) == 25
    assert policy.nap_s([32]) == 0.0
