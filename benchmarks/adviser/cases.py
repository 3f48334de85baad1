"""What a planted case is, and how its outcome is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from parallelrun_core.adviser.advice import Advice, AdviceFinding

LEAST_S = 1.0
"""What is worth saying here: these jobs take seconds."""


@dataclass(frozen=True)
class Went:
    """How a job went, and what is said about it."""

    seconds: float
    advice: Advice

    @property
    def ids(self) -> list[str]:
        return [finding.id for finding in self.advice.findings]


@dataclass(frozen=True)
class Case:
    """One bottleneck that is planted.

    Args:
        finding: the id of what is to be found first.
        slow: runs the job with it.
        mended: runs it again, as the finding says.
        is_about_time: whether the finding predicts a time.
    """

    name: str
    finding: str
    slow: Callable[[], Went]
    mended: Callable[[AdviceFinding], Went]
    is_about_time: bool = True


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    name: str
    is_first: bool
    is_silent: bool
    """Whether nothing is said about the mended job."""
    error: float
    """Of the prediction: its difference from the time of the mended job, as a share of that of the slow one."""
    said: str


def play(case: Case) -> Outcome:
    """Run a case, do what is said, and run it again."""
    slow = case.slow()
    if not slow.ids or slow.ids[0] != case.finding:
        return Outcome(case.name, False, False, 1.0, f"{slow.seconds:.2f} s, found {slow.ids}")
    finding = slow.advice.findings[0]
    mended = case.mended(finding)
    error = abs(finding.predicted_s - mended.seconds) / slow.seconds if case.is_about_time else 0.0
    predicted = f"predicted {finding.predicted_s:.2f} s, " if case.is_about_time else ""
    said = f"{slow.seconds:.2f} s, {predicted}mended {mended.seconds:.2f} s"
    if mended.ids:
        said += f", but then found {mended.ids}"
    return Outcome(case.name, True, not mended.ids, error, said)
