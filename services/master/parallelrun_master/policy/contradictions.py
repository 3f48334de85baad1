"""Contradictions between the leader's books and Redis. Pure, no I/O: counts and times are passed in.

Each mini-batch that is published and not decided waits in the queue, or is held by a session. Anything else can't end
by itself: a decision whose record the disk has lost, or entries of Redis that somebody has removed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_STILL_S: Final = 2.0
"""How long nothing must have moved: what is on its way between two processes is nowhere for a moment."""
_AGAIN_S: Final = 5.0


class Counts(NamedTuple):
    """The counts of a job that a leader has at hand."""

    decided: int
    published: int
    outstanding: int
    leased: int


class Whereabouts(NamedTuple):
    """The places of the mini-batches that are published and not decided."""

    nowhere: frozenset[int]
    """Redis has no message of them."""
    unreachable: frozenset[int]
    """Redis has a message, but they neither wait nor are held by a session that lives."""

    def __bool__(self) -> bool:
        return bool(self.nowhere or self.unreachable)


class StillWatch:
    """Tells when nothing has moved for so long that it is worth a check, and which contradictions last."""

    def __init__(self) -> None:
        self._counts: Counts | None = None
        self._check_at = 0.0
        self._suspected: Whereabouts | None = None

    def is_due(self, counts: Counts, now: float) -> bool:
        """Return whether to check where all mini-batches are: not while something moves."""
        if counts != self._counts:
            self._counts, self._suspected = counts, None
            self._check_at = now + _STILL_S
        return now >= self._check_at

    def lasting(self, suspects: Whereabouts, now: float) -> Whereabouts | None:
        """Return what was a contradiction at the last check as well; it has to be mended."""
        self._check_at = now + (_AGAIN_S if not suspects else _STILL_S / 4)
        suspected, self._suspected = self._suspected, suspects if suspects else None
        return suspects if suspects and suspects == suspected else None


def whereabouts(
    undecided: frozenset[int], registered: frozenset[int], waiting: frozenset[int], leased: frozenset[int]
) -> Whereabouts:
    """Compare what is published and not decided with what Redis knows, offers, and has given out."""
    return Whereabouts(undecided - registered, (undecided & registered) - waiting - leased)
