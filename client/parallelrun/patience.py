"""How long a server may stay away from those who wait for it, and the pauses after which it is asked again."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from parallelrun.errors import ApiError, ConnectionFailed, ParallelRunError, TimedOut
from parallelrun.transport import REPEATABLE_STATUS

Answer = TypeVar("Answer")

PATIENCE_S: Final = 120.0
"""How long the server may stay away."""

_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 5.0


class Patience:
    """That of one who waits."""

    def __init__(self, limit_s: float = PATIENCE_S, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._limit_s = limit_s
        self._sleep = sleep
        self._failures = 0
        self._heard = time.monotonic()

    def heard(self) -> None:
        """The server has said something."""
        self._failures = 0
        self._heard = time.monotonic()

    def check(self, failure: Exception) -> None:
        """Take note of a failure.

        Raises:
            ApiError: it is a refusal, which time does not mend.
            ConnectionFailed: nothing was heard for too long.
        """
        if isinstance(failure, ApiError) and failure.status not in REPEATABLE_STATUS:
            raise failure
        self._failures += 1
        if time.monotonic() - self._heard > self._limit_s:
            message = failure.message if isinstance(failure, ParallelRunError) else str(failure)
            raise ConnectionFailed(f"{message} Gave up after {self._limit_s:.0f} s.") from failure

    def pause(self, most_s: float = _LONGEST_PAUSE_S) -> None:
        """Sleep until it may be tried again, but no longer than `most_s`."""
        pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(self._failures - 1, 8))
        self._sleep(min(most_s, pause_s * random.uniform(0.5, 1.0)))  # noqa: S311 - spreads clients, hides nothing


def patiently(
    ask: Callable[[], Answer],
    *,
    limit_s: float = PATIENCE_S,
    deadline: float = math.inf,
    sleep: Callable[[float], None] = time.sleep,
) -> Answer:
    """What `ask` returns, as soon as the server is there to answer it.

    Args:
        limit_s: how long the server may stay away.
        deadline: when whoever asks stops waiting, by the monotonic clock; it is asked once all the same.

    Raises:
        ApiError: it is a refusal.
        ConnectionFailed: the server stayed away for too long.
        TimedOut: it did so until the deadline.
    """
    patience = Patience(limit_s, sleep=sleep)
    while True:
        try:
            return ask()
        except (ConnectionFailed, ApiError) as failure:
            patience.check(failure)
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TimedOut(f"{failure.message} The time given is over.") from failure
        patience.pause(most_s=left_s)
