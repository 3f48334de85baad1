"""Small matters of a service's process."""

from __future__ import annotations

import ctypes
import queue
import signal
from contextlib import suppress

_PR_SET_PDEATHSIG = 1


class StopSignal:
    """SIGTERM or SIGINT, from its making on something to look at and to wait for. To be made in the main thread.

    A handler runs between any two steps of the main thread. This kind of queue may be written to at any of them; an
    Event may not: the main thread may just be holding its lock.
    """

    def __init__(self) -> None:
        self.came = False
        """Whether the process was told to end."""
        self._told: queue.SimpleQueue[None] = queue.SimpleQueue()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def _note(self, *_: object) -> None:
        self.came = True
        self._told.put(None)

    def wait(self, timeout_s: float | None = None) -> None:
        """Return when the process is told to end, or after a time."""
        if not self.came:
            with suppress(queue.Empty):
                self._told.get(timeout=timeout_s)


def die_with_parent() -> None:
    """From now on, get SIGTERM when the thread that forked this process ends: fork from the main thread.

    Only the kernel can do so whatever the parent dies of.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
