"""Costly reads: a few at a time, shared where they are the same, refused where they are too many."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from parallelrun_api.http.concurrency import ConcurrencyLimiter
from parallelrun_api.http.errors import TooManyReads
from parallelrun_api.people.person import CURRENT, Person

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(coroutine, 30))


class Reads:
    """Reads that go on until they are let go, and count how many there are."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun = 0
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()

    def __call__(self) -> int:
        with self._lock:
            self.begun += 1
            number = self.begun
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        assert self.go.wait(20)
        with self._lock:
            self.at_once -= 1
        return number


async def until_begun(reads: Reads, count: int) -> None:
    while reads.begun < count:  # noqa: ASYNC110 (they begin in threads)
        await asyncio.sleep(0.001)


def test_a_few_at_a_time_and_no_more_than_may_wait() -> None:
    async def story() -> None:
        reads, lane = Reads(), ConcurrencyLimiter(at_once=2, waiting=3)
        tasks = [asyncio.create_task(lane.run(number, reads)) for number in range(5)]
        await until_begun(reads, 2)
        with pytest.raises(TooManyReads):
            await lane.run("one more", reads)
        reads.go.set()
        assert sorted(await asyncio.gather(*tasks)) == [1, 2, 3, 4, 5]
        assert reads.most_at_once == 2
        assert await lane.run("later", reads) == 6

    run(story())


def test_an_answer_is_shared_unless_it_was_begun_before() -> None:
    async def story() -> None:
        reads, lane = Reads(), ConcurrencyLimiter(at_once=1, waiting=1)
        first = asyncio.create_task(lane.run("same", reads))
        await until_begun(reads, 1)
        others = [asyncio.create_task(lane.run("same", reads)) for _ in range(40)]
        await asyncio.sleep(0)
        reads.go.set()
        assert await first == 1
        assert set(await asyncio.gather(*others)) == {2}

    run(story())


def test_people_who_see_only_their_own_share_answers_with_nobody() -> None:
    async def ask(lane: ConcurrencyLimiter, reads: Reads, name: str, *, sees_all: bool) -> int:
        CURRENT.set(Person(name, frozenset({"submit"}), sees_all))
        return await lane.run("same", reads)

    async def story() -> None:
        reads, lane = Reads(), ConcurrencyLimiter(at_once=1, waiting=9)
        busy = asyncio.create_task(lane.run("busy", reads))
        await until_begun(reads, 1)
        people = [("anna", False), ("bert", False), ("anna", False), ("carl", True), ("dora", True)]
        tasks = [asyncio.create_task(ask(lane, reads, name, sees_all=sees_all)) for name, sees_all in people]
        await asyncio.sleep(0)
        reads.go.set()
        assert await busy == 1
        assert await asyncio.gather(*tasks) == [2, 3, 2, 4, 4]

    run(story())


def test_who_goes_away_takes_nothing_from_the_others() -> None:
    async def story() -> None:
        reads, lane = Reads(), ConcurrencyLimiter(at_once=1, waiting=1)
        busy = asyncio.create_task(lane.run("busy", reads))
        await until_begun(reads, 1)
        gone, patient = (asyncio.create_task(lane.run("same", reads)) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        reads.go.set()
        assert (await busy, await patient) == (1, 2)

    run(story())


def test_an_error_is_that_of_all_who_wait_for_it() -> None:
    def fail() -> None:
        raise LookupError("no such list")

    async def story() -> None:
        lane = ConcurrencyLimiter(at_once=1, waiting=1)
        results = await asyncio.gather(*(lane.run("same", fail) for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [LookupError] * 3

    run(story())
