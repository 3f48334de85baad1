"""Threads in which an ordinary run() is called, for clients of APIs that block."""

from __future__ import annotations

import asyncio
import threading
from contextvars import copy_context
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from parallelrun_worker.execution.user_script import UserScript
    from parallelrun_worker.mini_batches.mini_batch import MiniBatch


class RunThreads:
    """Up to `most` threads, kept for the next mini-batches: what a script keeps in a `threading.local()` stays.

    A thread can't be canceled. One whose mini-batch has timed out is left to itself, and another takes its place.
    """

    def __init__(self, events: asyncio.AbstractEventLoop, most: int) -> None:
        self._events = events
        self._most = most
        self._calls: SimpleQueue[tuple[Callable[[], object], asyncio.Future[object]]] = SimpleQueue()
        self._idle = 0
        self._started = 0

    async def run(self, script: UserScript, mini_batch: int, loaded: MiniBatch) -> object:
        """Return what run() returns in one of the threads; what it raises is raised."""
        future: asyncio.Future[object] = self._events.create_future()
        if self._idle:
            self._idle -= 1
        else:
            self._started += 1
            threading.Thread(target=self._work, name=f"run-{self._started}", daemon=True).start()
        context = copy_context()  # with the stopwatch of the mini-batch
        self._calls.put((lambda: context.run(script.run, mini_batch, loaded), future))
        return await future

    def _work(self) -> None:
        while True:
            call, future = self._calls.get()
            try:
                returned, error = call(), None
            except BaseException as raised:
                returned, error = None, raised
            if future.cancelled():  # another thread has its place
                return
            self._events.call_soon_threadsafe(self._finish, future, returned, error)

    def _finish(self, future: asyncio.Future[object], returned: object, error: BaseException | None) -> None:
        self._idle += 1
        if future.cancelled():
            return
        if error is None:
            future.set_result(returned)
        elif isinstance(error, StopIteration):  # a future takes any other
            future.set_exception(RuntimeError(f"run() raised {error!r}"))
        else:
            future.set_exception(error)
