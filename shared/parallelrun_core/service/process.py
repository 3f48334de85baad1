"""How a service's process is asked to end."""

from __future__ import annotations

import ctypes
import queue
import signal
from contextlib import suppress

_PR_SET_PDEATHSIG = 1


class StopSignal:
    """SIGTERM or SIGINT, as something to check and to wait for. Create it in the main thread.

    A handler runs between any two steps of the main thread. A SimpleQueue may be written to at any of them; an Event
    may not: the main thread may be holding its lock.
    """

    def __init__(self) -> None:
        self.came = False
        """Whether the process was asked to end."""
        self._signals: queue.SimpleQueue[None] = queue.SimpleQueue()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def _note(self, *_: object) -> None:
        self.came = True
        self._signals.put(None)

    def wait(self, timeout_s: float | None = None) -> None:
        """Return when the process is asked to end, or after a time."""
        if not self.came:
            with suppress(queue.Empty):
                self._signals.get(timeout=timeout_s)


def die_with_parent() -> None:
    """From now on, get SIGTERM when the thread that forked this process ends: fork from the main thread.

    Only the kernel can do this, whatever the parent dies of.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
