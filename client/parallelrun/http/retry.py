"""Retries while a server is away: how long to wait for it, and the pauses between the tries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final, TypeVar

from parallelrun.errors import ApiError, ConnectionFailed, ParallelRunError, TimedOut
from parallelrun.http.transport import REPEATABLE_STATUS
from parallelrun_core.service.pacing import Backoff

Answer = TypeVar("Answer")

PATIENCE_S: Final = 120.0
"""How long the server may be away."""

_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 5.0


class RetryDeadline:
    """The patience of one caller with one server."""

    def __init__(self, limit_s: float = PATIENCE_S, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._limit_s = limit_s
        self._sleep = sleep
        self._backoff = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S, jitter=0.5)  # spreads clients
        self._last_response_at = time.monotonic()

    def note_response(self) -> None:
        """Note that the server has sent something."""
        self._backoff.reset()
        self._last_response_at = time.monotonic()

    def check(self, failure: Exception) -> None:
        """Check whether to go on after a failure.

        Raises:
            ApiError: it is a refusal, which waiting doesn't change.
            ConnectionFailed: nothing was note_response from the server for too long.
        """
        if isinstance(failure, ApiError) and failure.status not in REPEATABLE_STATUS:
            raise failure
        if time.monotonic() - self._last_response_at > self._limit_s:
            message = failure.message if isinstance(failure, ParallelRunError) else str(failure)
            raise ConnectionFailed(f"{message} Gave up after {self._limit_s:.0f} s.") from failure

    def pause(self, most_s: float = _LONGEST_PAUSE_S) -> None:
        """Sleep until the next try, for `most_s` at most."""
        self._sleep(min(most_s, self._backoff.next_s()))


def patiently(
    ask: Callable[[], Answer],
    *,
    limit_s: float = PATIENCE_S,
    deadline: float = math.inf,
    sleep: Callable[[float], None] = time.sleep,
) -> Answer:
    """The answer of `ask`, which is repeated while the server is away.

    Args:
        limit_s: how long the server may be away.
        deadline: when the caller stops waiting, by the monotonic clock; there is one try in any case.

    Raises:
        ApiError: it is a refusal.
        ConnectionFailed: the server was away for too long.
        TimedOut: it was away until the deadline.
    """
    patience = RetryDeadline(limit_s, sleep=sleep)
    while True:
        try:
            return ask()
        except (ConnectionFailed, ApiError) as failure:
            patience.check(failure)
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TimedOut(f"{failure.message} Timed out.") from failure
        patience.pause(most_s=left_s)
