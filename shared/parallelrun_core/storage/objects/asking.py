"""Threads that wait for a store: each request of theirs ends in time, which nobody promises of a file system."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

_ROOM: Final = __name__.rpartition(".")[0]


def asks_store(thread: int) -> bool:
    """Return whether a thread is in a function of this package, or of one that `asking` has called."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(_ROOM):
            return True
        frame = frame.f_back
    return False


def asking(ask: Callable[[], T]) -> T:
    """Return what a function returns that waits for a store in another way than by calling this
    package in this thread.
    """
    return ask()
