"""A queue that hands over in groups, from one thread to another."""

from __future__ import annotations

import threading
import time
from queue import SimpleQueue

import pytest

from parallelrun_agent.workers.committer import GroupQueue

PATIENCE_S = 20.0


class Taker:
    """A thread that takes groups; it takes the next one when `go` is called."""

    def __init__(self, gathering: GroupQueue[int]) -> None:
        self.groups: SimpleQueue[list[int]] = SimpleQueue()
        self._gathering = gathering
        self._turns = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def _take(self) -> None:
        while self._turns.acquire() and (group := self._gathering.next_group()):
            self.groups.put(group)
        self.groups.put([])

    def go(self, times: int = 1) -> None:
        self._turns.release(times)

    def next(self) -> list[int]:
        return self.groups.get(timeout=PATIENCE_S)


def test_what_comes_while_a_group_is_at_work_is_the_next_group() -> None:
    gathering: GroupQueue[int] = GroupQueue(PATIENCE_S)
    taker = Taker(gathering)
    gathering.add(1)
    gathering.hurry()
    taker.go()
    assert taker.next() == [1]
    for number in (2, 3, 4):
        gathering.add(number)
    gathering.hurry()
    taker.go()
    assert taker.next() == [2, 3, 4]
    gathering.finish()
    taker.go()
    assert taker.next() == []


def test_a_group_that_nobody_waits_for_gathers_and_one_that_is_awaited_does_not() -> None:
    gathering: GroupQueue[int] = GroupQueue(0.2)
    gathering.add(1)
    began = time.monotonic()
    assert gathering.next_group() == [1]
    assert time.monotonic() - began >= 0.2
    patient: GroupQueue[int] = GroupQueue(PATIENCE_S)
    patient.add(1)
    patient.hurry()
    began = time.monotonic()
    assert patient.next_group() == [1]
    assert time.monotonic() - began < PATIENCE_S / 2


@pytest.mark.parametrize("ends", ["hurry", "finish"])
def test_who_gathers_already_is_woken(ends: str) -> None:
    gathering: GroupQueue[int] = GroupQueue(PATIENCE_S * 10)
    taker = Taker(gathering)
    taker.go()
    gathering.add(1)
    getattr(gathering, ends)()
    assert taker.next() == [1]


def test_hurry_for_nothing_leaves_the_next_group_its_time() -> None:
    gathering: GroupQueue[int] = GroupQueue(0.2)
    gathering.hurry()
    gathering.add(1)
    began = time.monotonic()
    assert gathering.next_group() == [1]
    assert time.monotonic() - began >= 0.2


def test_what_was_added_before_the_end_is_still_handed_over() -> None:
    gathering: GroupQueue[int] = GroupQueue(PATIENCE_S)
    gathering.add(1)
    gathering.finish()
    assert gathering.next_group() == [1]
    assert gathering.next_group() == []


def test_nothing_is_lost_between_two_threads_in_a_hurry() -> None:
    gathering: GroupQueue[int] = GroupQueue(0.0)
    taker = Taker(gathering)
    taker.go(1_000_000)
    for number in range(50_000):
        gathering.add(number)
        if not number % 7:
            gathering.hurry()
    gathering.finish()
    taken: list[int] = []
    while group := taker.next():
        taken += group
    assert taken == list(range(50_000))
