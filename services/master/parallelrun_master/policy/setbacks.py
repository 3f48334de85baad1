"""Setbacks: what follows when a leader can't continue, that is how long nobody leads, and when the job fails. Pure, no
I/O.

Setbacks are counted on Redis, each kind by itself, and from zero once something durable has been done since the last
one: what recurs now and then in a job of weeks is no reason to fail it.
"""

from __future__ import annotations

from math import inf
from typing import Final, NamedTuple

from parallelrun_core.figures import counted
from parallelrun_core.service.pacing import Backoff
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.leasing import LONGEST_PAUSE_MS

_FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = LONGEST_PAUSE_MS / 1000


class Setback(NamedTuple):
    """A kind of reason why a leader can't continue."""

    kind: str
    """The name under which it is counted and logged."""
    most: int | None
    """Number of in a row fail the job; None: their number doesn't matter."""
    code: str
    summary: str
    """The summary of the failure, with places for the count, the tries in words and the last reason."""
    hint: str = ""
    is_limited_in_time: bool = False
    """True if the job fails when they last for longer than its `task_overhead_timeout`."""

    def failure(self, count: int, why: str, lasted_s: float = 0.0, limit_s: float = inf) -> JobFailure | None:
        """Return how the job fails after this many of them in a row, in so many seconds, if it does."""
        is_over = lasted_s > limit_s if self.is_limited_in_time else self.most is not None and count >= self.most
        if not is_over:
            return None
        tries = counted(count, "try", "tries")
        summary = self.summary.format(count=count, tries=tries, why=why, seconds=lasted_s)
        return JobFailure(code=self.code, summary=summary, hint=self.hint)


CRASH: Final = Setback("leader_crashes", 3, "MASTER_ERROR", "The master failed {count} times: {why}")
FULL: Final = Setback("disk_full", None, "DISK_FULL", "")
TROUBLE: Final = Setback(
    "disk_trouble",
    30,
    "MASTER_ERROR",
    "The files of the job could not be used {count} times in a row: {why}",
    "make sure that the shared volume can be read and written; the job can then be resumed",
)
INPUT_TROUBLE: Final = Setback(
    "input_trouble", 7, "INPUT_UNREADABLE", "The input can't be read, even after {tries}: {why}"
)
STORE_AWAY: Final = Setback(
    "store_away",
    None,
    "INPUT_UNREADABLE",
    "The store of an input has not answered for {seconds:.0f} s, in {tries}: {why}",
    "make sure that the masters can reach the store; the job can then be resumed. task_overhead_timeout says how long "
    "it is waited for",
    is_limited_in_time=True,
)
HANG: Final = Setback(
    "leader_hangs",
    20,
    "MASTER_ERROR",
    "{count} leaders in a row have hung: {why}",
    "make sure that all inputs and the shared volume can be read, and that no input is a pipe; the job can then be "
    "resumed",
)


def damage(why: str) -> JobFailure:
    """Return how a job fails that can't continue without what is damaged; another leader would find the same."""
    return JobFailure(
        code="JOB_DAMAGED",
        summary=f"The job's folder is damaged, and the job can't continue without what is missing: {why}",
        hint="put that file back, for instance from a backup, and resume the job; or submit it again",
    )


def pause_s(count: int) -> float:
    """Return how long nobody leads after this many setbacks of one kind in a row."""
    return Backoff(_FIRST_PAUSE_S, LONGEST_PAUSE_S).after_s(count)
