"""CircuitBreaker for an engine that could not give a node, and the verdict on each launch: a success not when its node
has come, but when that was good for something."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from parallelrun_provisioner.policy.scaling import NodePhase

PAUSES_S: Final = (0.0, 60.0, 900.0, 1800.0, 3600.0)
"""After the first failure, the second one, and so on (those of HyperQueue's automatic allocation)."""
PROOF_S: Final = 60.0
"""A node that has lived for so long was worth its launch, even if nobody has had work for it."""
_HAS_COME: Final = frozenset({NodePhase.READY, NodePhase.LEAVING, NodePhase.LEFT})


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


class Verdict(Enum):
    """The meaning of a launch for those that follow."""

    OPEN = auto()
    """Nothing yet."""
    SUCCESS = auto()
    FAILURE = auto()
    NOTHING = auto()
    """Nothing, for ever: its node went because somebody wanted that."""


def verdict(
    life: NodePhase, *, lived_s: float, has_work: bool, is_asked: bool, is_over: bool, was_taken: bool
) -> Verdict:
    """Return whether a launch was a success, by how its node stands.

    A node that ends by itself soon after it has come is a failure, like one that never came: otherwise such nodes would
    be replaced as fast as they die.

    Args:
        lived_s: since its agent has come.
        has_work: it has work in hand.
        is_asked: it was asked to leave, or its engine was told to end it.
        is_over: it has ended, or is to be removed.
        was_taken: its engine has taken it away.
    """
    if lived_s >= PROOF_S or (life is NodePhase.READY and has_work) or (life in _HAS_COME and is_asked):
        return Verdict.SUCCESS
    if not is_over:
        return Verdict.OPEN
    return Verdict.NOTHING if is_asked or was_taken else Verdict.FAILURE
