"""The pace of polling: how often an engine is asked for its nodes."""

from __future__ import annotations

from typing import Final

LONGEST_S: Final = 10.0
"""What it says must not be older than the time for which a node may be unknown to it (`scaling.MISSING_S`)."""
_OF_QUIET: Final = 0.1
"""A node that has been waiting for an hour will hardly start in this very second."""
_OF_COST: Final = 20.0
"""Engines are others', too: at most this part of the time, one is busy with a question of ours."""


def list_after_s(*, quiet_s: float, cost_s: float) -> float:
    """After how many seconds an engine is asked again.

    Args:
        quiet_s: since anything has changed, was asked for, or ended.
        cost_s: how long the last answer took.
    """
    return min(max(quiet_s * _OF_QUIET, cost_s * _OF_COST), LONGEST_S)
