"""How long an agent may believe that its lease still holds. Pure arithmetic on the monotonic clock.

Redis ends a lease by its own clock, `lease` after the renewal *arrived*. The agent counts from the moment it *sent*
the renewal and stops a margin earlier, so it has ended its workers before anybody else may start theirs, whatever
the wall clocks say. The margin is never less than twice what a quick turn may leave the lease short by (`RENEW_AFTER`).
"""

from __future__ import annotations


class LeaseClock:
    """The trust window of one session."""

    def __init__(self, lease_s: float) -> None:
        self._window = lease_s - max(min(1.0, 0.2 * lease_s), 0.04 * lease_s)
        self._until = float("-inf")

    def renewed(self, sent_at: float) -> None:
        """A renewal that was sent at this monotonic time has been confirmed."""
        self._until = max(self._until, sent_at + self._window)

    def is_valid(self, now: float) -> bool:
        return now < self._until

    def left_s(self, now: float) -> float:
        return max(0.0, self._until - now)
