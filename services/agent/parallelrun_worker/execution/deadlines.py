"""Deadlines of mini-batches in flight: one timer for all of them, since hardly any is ever late."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from parallelrun_worker.script_api.permits import Stopwatch

_CANCEL_S = 1.0
"""How long a run() that is canceled has for cleaning up."""
_PAUSE_S = 0.01
"""Between two looks at least, where one waits for a permit with hardly any time left."""


class MiniBatchRun:
    """A mini-batch in flight.

    Args:
        task: awaits run(), and is what gets canceled.
        stopwatch: has the time that it waits for permits, which doesn't count.
    """

    __slots__ = ("began", "canceled_at", "is_given_up", "items", "mini_batch", "stopwatch", "task")

    def __init__(self, mini_batch: int, task: asyncio.Task[Any] | None, stopwatch: Stopwatch) -> None:
        assert task is not None  # noqa: S101  the caller is one
        self.mini_batch = mini_batch
        self.task: asyncio.Task[Any] = task
        self.stopwatch = stopwatch
        self.items = 0
        self.began = time.perf_counter()
        self.canceled_at = 0.0
        self.is_given_up = False
        """It was answered for though its run() goes on."""


class Deadlines:
    """Cancels each run() that takes too long, alone.

    Args:
        limit_s: seconds that run() may take; 0: any time.
        give_up: called with one that doesn't end though it was canceled.
    """

    def __init__(
        self, events: asyncio.AbstractEventLoop, limit_s: float, give_up: Callable[[MiniBatchRun], None]
    ) -> None:
        self._events = events
        self._limit_s = limit_s
        self._give_up = give_up
        self._runs: dict[int, MiniBatchRun] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, run: MiniBatchRun) -> None:
        """Watch a run() that begins."""
        if self._limit_s:
            self._runs[run.mini_batch] = run
            if self._timer is None:
                self._timer = self._events.call_later(self._limit_s, self._look)

    def end(self, run: MiniBatchRun) -> None:
        """Watch it no longer: it has ended."""
        if self._runs.get(run.mini_batch) is run:
            del self._runs[run.mini_batch]

    def _look(self) -> None:
        """Cancel those that are late, and come back when the next one may be: none that begins later is due earlier."""
        now, pause_s = time.perf_counter(), self._limit_s
        for run in list(self._runs.values()):
            if run.canceled_at:
                left_s = run.canceled_at + _CANCEL_S - now
                if left_s <= 0:
                    del self._runs[run.mini_batch]
                    self._give_up(run)
                    continue
            else:
                left_s = self._limit_s + run.stopwatch.seconds() - (now - run.began)
                if left_s <= 0:
                    run.canceled_at, left_s = now, _CANCEL_S
                    run.task.cancel()
            pause_s = min(pause_s, left_s)
        self._timer = self._events.call_later(max(_PAUSE_S, pause_s), self._look) if self._runs else None
