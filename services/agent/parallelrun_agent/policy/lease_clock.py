"""The lease clock: how long an agent may rely on its lease. Pure arithmetic on the monotonic clock.

Redis ends a lease by its own clock, `lease` after the renewal *arrived*. The agent counts from the moment it *sent*
the renewal and stops a margin earlier. So it has ended its workers before any other node may start on their work,
whatever the wall clocks show. The margin is never less than twice what a quick turn may leave the lease short by
(`RENEW_AFTER`).
"""

from __future__ import annotations


class LeaseClock:
    """The local deadline of one session."""

    def __init__(self, lease_s: float) -> None:
        self._window = lease_s - max(min(1.0, 0.2 * lease_s), 0.04 * lease_s)
        self._until = float("-inf")

    def renewed(self, sent_at: float) -> None:
        """A renewal that was sent at this monotonic time has been confirmed."""
        self._until = max(self._until, sent_at + self._window)

    def is_valid(self, now: float) -> bool:
        """Return whether the lease can't have run out on Redis yet."""
        return now < self._until

    def left_s(self, now: float) -> float:
        """Return how long it stays so without a renewal."""
        return max(0.0, self._until - now)
