"""Runs what may ask a store in a thread of its own: whoever leads goes on meanwhile, and hears of a cancel.

A store may take a minute for an answer, and its client ends each request in time. A file system that doesn't answer
holds whoever asks for ever: a thread that neither works nor waits for a store for so long has hung.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from parallelrun_core.store.heartbeat import own_cpu_clock

T = TypeVar("T")

_STEP_S: Final = 0.05
_END_S: Final = 0.5
_STORES: Final = "parallelrun_core.storage.objects."
"""Whose functions ask stores."""


class Hung(Exception):
    """A file system doesn't answer."""


def where_is(thread: int) -> str:
    """Return where a thread is now: its innermost two functions."""
    stack = traceback.extract_stack(sys._current_frames()[thread])
    return ", called by ".join(f"{each.name} ({Path(each.filename).name})" for each in stack[:-3:-1])


def asks_store(thread: int) -> bool:
    """Return whether a thread is in a function that asks a store."""
    frame = sys._current_frames().get(thread)
    while frame is not None and not str(frame.f_globals.get("__name__", "")).startswith(_STORES):
        frame = frame.f_back
    return frame is not None


class WatchedThread:
    """A thing after another, in one thread.

    Args:
        patience_s: how long the thread may do nothing without asking a store.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._tasks: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._pending: Future[Any] | None = None
        self._thread = threading.Thread(target=self._work, name="apart", daemon=True)
        self._clock: Callable[[], float] = lambda: 0.0
        self._used = self._moved = 0.0

    @property
    def is_busy(self) -> bool:
        """Return whether something was asked for, and not returned yet."""
        return self._pending is not None

    def ask(self, work: Callable[[], T]) -> T | None:
        """Return what this returns; None while it takes longer: then it is to be asked for again. It never returns
        None.

        Raises:
            Hung: a file system doesn't answer.
        """
        if self._pending is None:
            self._pending = Future()
            self._tasks.put((work, self._pending))
            self._moved = time.monotonic()
            if self._thread.ident is None:
                self._thread.start()
        if wait([self._pending], _STEP_S).not_done:
            self._check()
            return None
        done, self._pending = self._pending, None
        return cast(T, done.result())

    def close(self, last: Callable[[], object] = lambda: None) -> None:
        """Do this last, when what it does now has ended. It is not waited for while a store is."""
        if self._thread.ident is None:
            last()
            return
        self._tasks.put((last, Future()))
        self._tasks.put(None)
        self._thread.join(0 if self._pending is not None and asks_store(self._thread.ident) else _END_S)

    def _check(self) -> None:
        thread, now = cast(int, self._thread.ident), time.monotonic()
        used = self._clock()
        if used > self._used or asks_store(thread):
            self._used, self._moved = used, now
        elif now - self._moved > self._patience_s:
            raise Hung(f"a file system has not answered for {self._patience_s:g} s, in {where_is(thread)}")

    def _work(self) -> None:
        self._clock = own_cpu_clock()
        while (task := self._tasks.get()) is not None:
            work, future = task
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
