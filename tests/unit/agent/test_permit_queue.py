"""Who of a node's workers may call a limited service, and when."""

from __future__ import annotations

from parallelrun_agent.permits.queue import PermitQueue, WaitingCall
from parallelrun_core.store.permits import Call


def queue_of(*numbers: int) -> PermitQueue:
    queue = PermitQueue()
    for number in numbers:
        queue.add(WaitingCall(("worker", number), Call(f"h{number}")))
    return queue


def numbers_of(waiting: list[WaitingCall]) -> list[int]:
    return [each.caller[1] for each in waiting]


def test_permit_queue_begins_calls_when_they_may_in_order() -> None:
    queue = queue_of(1, 2, 3)
    assert [call.holder for call in queue.next_calls(10.0)] == ["h1", "h2", "h3"]
    queue.grant([0.0, 0.5], wait_s=0.8, now=10.0)
    assert numbers_of(queue.due(10.0)) == [1]
    assert queue.wake_at() == 10.5
    assert numbers_of(queue.due(10.6)) == [2]
    assert queue.next_calls(10.7) == []
    assert [call.holder for call in queue.next_calls(10.8)] == ["h3"]


def test_permit_queue_gives_back_all_of_a_worker_that_is_gone() -> None:
    queue = queue_of(1, 2, 3)
    queue.grant([0.0, 5.0], wait_s=1.0, now=10.0)
    queue.due(10.0)
    assert sorted(queue.end(queue.callers())) == ["h1", "h2"], "the third had none yet"
    assert len(queue) == 0
    assert queue.held == {}


def test_permit_queue_keeps_what_goes_on_for_long() -> None:
    queue = queue_of(1)
    queue.grant([0.0], wait_s=0.0, now=10.0)
    queue.due(10.0)
    assert queue.to_keep(11.0) == []
    assert queue.to_keep(20.0) == ["h1"]
    assert queue.to_keep(21.0) == []
    assert queue.end([("worker", 1)]) == ["h1"]
    assert queue.to_keep(30.0) == []
