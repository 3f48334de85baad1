"""Clients that print the logs of a job: they stop at once, without a line, when it has ended before they ask.

A client that waits asks for the status every few seconds, and prints what is new each time. So the first answer about a
job that has ended is that it is about to, and the second one the truth.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Final

_ENDED: Final = frozenset({"Completed", "Failed", "Canceled"})
_UNTIL_THE_NEXT_S: Final = 60.0
_MOST_CLIENTS: Final = 1000


class Streams:
    """The clients that have lately asked for the status of a job. Safe to share between threads.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._lock = Lock()

    def status(self, person: str, job: str, status: str) -> str:
        """The status to answer to a person who asks for that of a job."""
        key, now = (person, job), self._clock()
        with self._lock:
            is_first = now - self._asked.pop(key, -_UNTIL_THE_NEXT_S) >= _UNTIL_THE_NEXT_S
            if status in _ENDED and not is_first:
                return status
            self._asked[key] = now
            while len(self._asked) > _MOST_CLIENTS:
                self._asked.popitem(last=False)
        return "Finalizing" if status in _ENDED else status
