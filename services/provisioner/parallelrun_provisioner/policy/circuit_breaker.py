"""CircuitBreaker for an engine that could not give a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PAUSES_S: Final = (0.0, 60.0, 900.0, 1800.0, 3600.0)
"""After the first failure, the second one, and so on (those of HyperQueue's automatic allocation)."""


@dataclass(frozen=True, kw_only=True)
class CircuitBreaker:
    """Counts launches that failed in a row, and says when the next may follow. Times are those of one clock, in
    seconds."""

    failures: int = 0
    failed_at: float = 0.0
    why: str = ""
    """The engine's words."""

    def failed(self, now: float, *, asked_at: float, why: str) -> CircuitBreaker:
        """A launch has failed. Several that were asked for before the last failure are one: nobody has tried since."""
        if self.failures and asked_at <= self.failed_at:
            return self
        return CircuitBreaker(failures=self.failures + 1, failed_at=now, why=why)

    @property
    def next_at(self) -> float:
        """Return when the next attempt may be made."""
        if not self.failures:
            return 0.0
        return self.failed_at + PAUSES_S[min(self.failures, len(PAUSES_S)) - 1]

    def launches(self, now: float, *, most: int) -> int:
        """Return how many nodes may be asked for now: after a failure one, to see whether it can be had."""
        if not self.failures:
            return most
        return min(1, most) if now >= self.next_at else 0
