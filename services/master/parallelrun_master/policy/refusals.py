"""Entries of the outcome stream that the leader refuses: what it says of them, and when it asks the journals instead.

An entry that isn't sealed by a session of the job was not written by one, or was altered. It may also come from an
agent of an older release, or its session's key may be lost: then what it reported is in the journals, where the leader
finds it. Whoever adds entries again and again must not keep the leader busy with that. Pure, no I/O.
"""

from __future__ import annotations

from typing import Final

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0


class Refusals:
    """The refused entries of one job, as seen by one leader."""

    def __init__(self) -> None:
        self.count = 0
        """How many there were."""
        self._mended = 0
        self._logged = 0
        self._pause_s = FIRST_PAUSE_S
        self._mend_at = 0.0

    def note(self) -> bool:
        """Count a refused entry; returns whether it is to be logged: the 1st, 2nd, 4th, 8th… are."""
        self.count += 1
        if self.count < 2 * self._logged:
            return False
        self._logged = self.count
        return True

    def are_to_be_mended(self, now: float) -> bool:
        """Return whether to look now for what the refused ones reported; each time that it is, the next pause is
        longer."""
        if self.count == self._mended or now < self._mend_at:
            return False
        self._mended = self.count
        self._mend_at = now + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        return True
