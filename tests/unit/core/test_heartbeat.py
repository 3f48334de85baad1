"""Whose lease is renewed during a long step, and whose is not."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import redis

from parallelrun_core.errors import Fenced
from parallelrun_core.store.heartbeat import cpu_ms_of_others, heartbeat, own_cpu_clock

PATIENCE_S = 30.0
HUNG_AFTER = 5


class Work:
    """CPU time that was used, as a test says; each look at it is counted."""

    def __init__(self) -> None:
        self.used_s = 1.0
        self.looks = threading.Semaphore(0)

    def clock(self) -> float:
        self.looks.release()
        return self.used_s

    def wait_for_looks(self, count: int) -> None:
        for _ in range(count):
            assert self.looks.acquire(timeout=PATIENCE_S)


def beating(
    beat: Callable[[], object],
    cpu_used: Callable[[], float],
    hung: Callable[[], object] = lambda: None,
    *,
    idle: bool = False,
) -> AbstractContextManager[None]:
    return heartbeat(beat, hung, every_s=0.001, cpu_used=cpu_used, hung_after=HUNG_AFTER, beats_while_idle=idle)


def test_only_who_works_is_renewed() -> None:
    work, renewed = Work(), threading.Semaphore(0)
    with beating(renewed.release, work.clock):
        work.wait_for_looks(5)
        assert not renewed.acquire(blocking=False), "nothing was done since"
        for _ in range(3):
            work.used_s += 1e-6
            assert renewed.acquire(timeout=PATIENCE_S)
        work.wait_for_looks(5)
        assert not renewed.acquire(blocking=False), "once for each time that something was done"


def test_a_redis_that_is_away_is_asked_again_and_a_term_that_is_over_is_not() -> None:
    work, asked = Work(), threading.Semaphore(0)
    answers = deque[Exception | None]([redis.ConnectionError(), redis.TimeoutError(), None, Fenced()])

    def renew() -> None:
        asked.release()
        if (error := answers.popleft()) is not None:
            raise error

    before = threading.active_count()
    with beating(renew, work.clock):
        for _ in range(4):
            work.used_s += 1
            assert asked.acquire(timeout=PATIENCE_S)
        until = time.monotonic() + PATIENCE_S
        while threading.active_count() > before:
            assert time.monotonic() < until, "it goes on asking"
            time.sleep(0.001)
    assert not answers


def test_who_does_nothing_for_a_lease_has_hung_which_is_reported_once() -> None:
    work, renewed, hung = Work(), threading.Semaphore(0), threading.Semaphore(0)
    answers = deque[Exception | None]([redis.ConnectionError(), None])

    def tell() -> None:
        hung.release()
        if (error := answers.popleft()) is not None:
            raise error

    with beating(renewed.release, work.clock, tell):
        for _ in range(2):
            assert hung.acquire(timeout=PATIENCE_S)
        work.looks = threading.Semaphore(0)
        work.wait_for_looks(20)
        assert not hung.acquire(blocking=False)
        assert not renewed.acquire(blocking=False)
        work.used_s += 1e-6
        assert renewed.acquire(timeout=PATIENCE_S), "it works again"


def test_who_may_be_idle_is_renewed_until_it_has_hung() -> None:
    work, events = Work(), deque[str]()
    with beating(lambda: events.append("beat"), work.clock, lambda: events.append("hung"), idle=True):
        work.wait_for_looks(HUNG_AFTER + 5)
    assert list(events) == ["beat"] * (HUNG_AFTER - 1) + ["hung"]


@pytest.mark.parametrize("error", [None, ValueError])
def test_nothing_is_renewed_when_it_is_over(error: type[Exception] | None) -> None:
    before = threading.active_count()
    try:
        with heartbeat(lambda: None, lambda: None, every_s=600, cpu_used=lambda: 0.0, hung_after=HUNG_AFTER):
            if error is not None:
                raise error
    except ValueError:
        pass
    assert threading.active_count() == before


def test_a_thread_that_waits_uses_no_time_of_its_own_and_one_that_works_does() -> None:
    clocks, begin, end = [], threading.Event(), threading.Event()

    def wait_then_work() -> None:
        clocks.append(own_cpu_clock())
        begin.wait(PATIENCE_S)
        while not end.is_set():
            pass

    thread = threading.Thread(target=wait_then_work)
    thread.start()
    try:
        until = time.monotonic() + PATIENCE_S
        before = -1.0
        while not clocks or clocks[0]() > before:
            assert time.monotonic() < until, "it never comes to rest"
            before = clocks[0]() if clocks else before
            time.sleep(0.02)
        begin.set()
        while clocks[0]() <= before:
            assert time.monotonic() < until, "its work is not seen"
            time.sleep(0.001)
    finally:
        end.set()
        thread.join()


def test_the_time_of_others_is_not_that_of_the_thread_which_asks() -> None:
    seen: list[int] = []

    def work_alone() -> None:
        before, mine = cpu_ms_of_others(), time.thread_time()
        while time.thread_time() < mine + 0.5:
            pass
        seen.append(cpu_ms_of_others() - before)

    thread = threading.Thread(target=work_alone)
    before = cpu_ms_of_others()
    thread.start()
    thread.join()
    assert cpu_ms_of_others() - before >= 500
    assert seen[0] < 400
