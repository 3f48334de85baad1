"""Reads that cost much: a few at a time, a few that wait, and all others are told to come again.

Each kind has a lane of its own, so nothing else ever waits for its threads. Those who ask for the same thing share one
answer, unless it was begun before they asked: what a client knows to be there must be in it. People who see only what
is their own share answers with nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import msgspec
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.responses import Response

from parallelrun_api.http.answers import encoded, encoded_answer
from parallelrun_api.http.errors import TooManyReads
from parallelrun_api.people.person import CURRENT

Answer = TypeVar("Answer")


class ConcurrencyLimiter:
    """A kind of reads. For one event loop."""

    def __init__(self, *, at_once: int, waiting: int) -> None:
        self._threads = CapacityLimiter(at_once)
        self._turn = asyncio.Semaphore(at_once)
        self._most = at_once + waiting
        self._tasks: set[asyncio.Task[Any]] = set()
        self._not_begun: dict[Hashable, asyncio.Task[Any]] = {}

    async def run(self, key: Hashable, read: Callable[[], Answer]) -> Answer:
        """The answer of `read`, which runs in a thread; equal keys stand for equal reads.

        Raises:
            TooManyReads: too many wait already.
        """
        key = (_viewer(), key)
        task: asyncio.Task[Answer] | None = self._not_begun.get(key)
        if task is None:
            if len(self._tasks) >= self._most:
                raise TooManyReads(f"{len(self._tasks)} reads of this kind are under way or waiting. Try again soon.")
            task = asyncio.create_task(self._run(key, read))
            self._not_begun[key] = task
            self._tasks.add(task)
            task.add_done_callback(self._forget)
        # One who goes away takes nothing from the others.
        return await asyncio.shield(task)

    async def answer(self, key: Hashable, read: Callable[[], msgspec.Struct]) -> Response:
        """Return what `read` returns as a response, which is encoded in the thread, too. Raises as `run` does."""
        return encoded_answer(await self.run(key, lambda: encoded(read())))

    async def _run(self, key: Hashable, read: Callable[[], Answer]) -> Answer:
        async with self._turn:
            del self._not_begun[key]
            return await run_sync(read, limiter=self._threads)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # somebody has it, or nobody is there any more


def _viewer() -> str | None:
    """Return whose things the person of this request sees; None: everybody's."""
    return CURRENT.get().only_owner
