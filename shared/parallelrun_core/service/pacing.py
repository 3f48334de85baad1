"""Pacing: how long to wait before the next attempt, and when something is due again. Neither knows
a clock, nor waits.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

_MOST_DOUBLINGS: Final = 64
"""Beyond this, every pause is the longest one, and a power of the count would no longer fit in a float."""


class Backoff:
    """Pauses that grow from one failed attempt to the next."""

    def __init__(
        self,
        first_s: float,
        most_s: float,
        *,
        factor: float = 2.0,
        jitter: float = 0.0,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """Nothing has failed yet.

        Args:
            first_s: the pause after the first failure.
            most_s: no pause is longer.
            factor: by how much each pause is longer than the one before.
            jitter: the part of a pause that is left to chance, 0 to 1, so that many don't try again at once: with 0.5,
                a pause lasts between half of its time and all of it.
            draw: a number from 0 to 1, for each pause with jitter.
        """
        self._first_s, self._most_s = first_s, most_s
        self._factor, self._jitter, self._draw = factor, jitter, draw
        self._failures = 0

    def next_s(self) -> float:
        """Count one more failure; returns how many seconds to wait before the next attempt."""
        self._failures += 1
        return self.after_s(self._failures)

    def reset(self) -> None:
        """An attempt has succeeded: the next pause is the first one again."""
        self._failures = 0

    def after_s(self, failures: int) -> float:
        """The pause after this many failures in a row, for those that are counted elsewhere; 0 after none."""
        if failures <= 0:
            return 0.0
        pause_s = min(self._most_s, self._first_s * self._factor ** min(failures - 1, _MOST_DOUBLINGS))
        return pause_s * (1.0 - self._jitter * self._draw()) if self._jitter else pause_s


class Every:
    """Something that is done at intervals, in a loop that runs more often. Any clock will do, if it is always the same.

    For code that runs for each mini-batch, comparing two numbers in place is quicker.
    """

    def __init__(self, interval_s: float, *, first_at: float = float("-inf")) -> None:
        """Due at the first question, or at `first_at`; infinity means not before `soon`."""
        self._interval_s = interval_s
        self._due_at = first_at

    def is_due(self, now: float) -> bool:
        """Return whether it is time; if so, the next time is one interval from now."""
        if now < self._due_at:
            return False
        self._due_at = now + self._interval_s
        return True

    def soon(self) -> None:
        """Be due at the next question."""
        self._due_at = float("-inf")

    def delay(self, now: float) -> None:
        """Be due one interval from now, and not before."""
        self._due_at = now + self._interval_s

    def wait_s(self, now: float) -> float:
        """The seconds that are left until it is due; 0 when it is."""
        return max(0.0, self._due_at - now)
