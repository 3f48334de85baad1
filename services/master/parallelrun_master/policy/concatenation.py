"""Concatenation policy: when to ask for the output, and again, and when to give up. Pure, no I/O: times and counts are
passed in.

Asking too often does no harm: one concatenation at a time works for a job, and each makes the same output.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from parallelrun_core.service.pacing import Backoff

_GONE_S: Final = 5.0
"""How long after the last sign of life of a concatenation another one is asked for."""
_AGAIN_S: Final = 15.0
_FIRST_PAUSE_S: Final = 0.25
_MAX_CRASHES: Final = 5
_CRASHES: Final = (
    f"The process that puts the output together died {_MAX_CRASHES} times before it finished; it may need more memory, "
    "or the volume doesn't answer. The rows are all there: resume the job when that is fixed."
)
_MAX_TROUBLES: Final = 30


class ConcatenationStep(Enum):
    """The action that is due now."""

    ASK = auto()
    WAIT = auto()
    GIVE_UP = auto()


class ConcatenationPolicy:
    """Decides how one leader gets the output of its job.

    Args:
        term: of the leader; distinguishes its requests from those of earlier leaders.
    """

    def __init__(self, term: int) -> None:
        self.attempt = ""
        """The latest request, unless it has failed; empty when there is none."""
        self.problem = ""
        """Why to give up."""
        self._term = term
        self._asked = 0
        self._ask_at = 0.0
        self._backoff = Backoff(_FIRST_PAUSE_S, _AGAIN_S)

    # What happened

    def alive(self, now: float) -> None:
        """A concatenation is under way, perhaps one that an earlier leader asked for."""
        self._ask_at = max(self._ask_at, now + _GONE_S)

    def died(self, now: float, *, crashes: int) -> float:
        """The process of the latest request died; returns how many seconds to wait.

        Args:
            crashes: how many have died for this job, this one included.
        """
        if crashes >= _MAX_CRASHES:
            self.problem = _CRASHES
        return self._pause(now)

    def postponed(self, now: float, *, problem: str = "", troubles: int = 0) -> float:
        """A concatenator can't make the output now; returns how many seconds to wait.

        Args:
            problem: what is wrong; empty for what is waited for without end, such as a full disk.
            troubles: how many problems there have been in this job, this one included.
        """
        if problem and troubles >= _MAX_TROUBLES:
            self.problem = problem
        return self._pause(now)

    def _pause(self, now: float) -> float:
        pause_s = self._backoff.next_s()
        self.attempt = ""
        self._ask_at = now + pause_s
        return pause_s

    # What to do

    def tick(self, now: float) -> ConcatenationStep:
        """Ask, wait or give up."""
        if self.problem:
            return ConcatenationStep.GIVE_UP
        return ConcatenationStep.ASK if now >= self._ask_at else ConcatenationStep.WAIT

    def ask(self, now: float, *, is_queued: bool) -> str:
        """The attempt to ask for: the latest one as long as it `is_queued`, or else a new one."""
        if not is_queued:
            self._asked += 1
            self.attempt = f"{self._term}-{self._asked}"
        self._ask_at = now + _AGAIN_S
        return self.attempt
