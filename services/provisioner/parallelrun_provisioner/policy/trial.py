"""The verdict on a launch: a success not when its node has come, but when that was good for something."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from parallelrun_provisioner.policy.scaling import NodePhase

PROOF_S: Final = 60.0
"""A node that has lived for so long was worth its launch, even if nobody has had work for it."""
_HAS_COME: Final = frozenset({NodePhase.READY, NodePhase.LEAVING, NodePhase.LEFT})


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
