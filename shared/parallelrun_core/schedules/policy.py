"""The schedule policy: what becomes of a time at which a schedule was due. It reads no clock and no file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Literal

from parallelrun_core.schedules.occurrences import Occurrences, count_between, latest_of

LATE: Final = timedelta(seconds=60)
"""A time that nobody has acted upon for so long was missed: no master ran, or Redis was away."""


Missed = Literal["once", "skip"]


class FireOutcome(StrEnum):
    """The outcome of a time at which a schedule was due."""

    STARTED = "started"
    """A job was made."""
    SKIPPED = "skipped"
    """None was, because an earlier one had not ended."""
    MISSED = "missed"
    """None was, because it was too late."""
    MANUAL = "manual"
    """A job was made because somebody asked for it, at this time."""

    @property
    def has_job(self) -> bool:
        return self in (FireOutcome.STARTED, FireOutcome.MANUAL)


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about a time at which a job was due."""

    due: datetime
    outcome: FireOutcome
    passed_over: int
    """Times before it that nobody has acted upon."""


def decide(
    due: Occurrences,
    *,
    since: datetime,
    now: datetime,
    missed: Missed,
    is_running: bool,
    may_overlap: bool,
) -> Decision | None:
    """Return what to do now; None: nothing has been due.

    However many times were missed, at most one job is made up for them: that of the latest one.

    Args:
        since: the last time that was acted upon, or when the schedule was made or enabled.
        is_running: whether a job that it made has not ended.
    """
    latest = latest_of(due, since, now)
    if latest is None:
        return None
    outcome = FireOutcome.STARTED
    if missed == "skip" and now - latest > LATE:
        outcome = FireOutcome.MISSED
    elif is_running and not may_overlap:
        outcome = FireOutcome.SKIPPED
    return Decision(latest, outcome, count_between(due, since, latest))
