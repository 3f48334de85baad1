"""Advice and its figures for people: on a terminal, in job_result.txt. Without numpy, since clients show it, too."""

from __future__ import annotations

from collections.abc import Iterator

from parallelrun_core.adviser.advice import Advice, AdviceFinding, Change
from parallelrun_core.figures import duration
from parallelrun_core.untrusted.sanitize import in_one_line


def lines_of(advice: Advice) -> list[str]:
    """The findings, numbered, each with its evidence and what to do; none if there are none."""
    return [line for number, finding in enumerate(advice.findings, 1) for line in _lines(number, finding)]


def _lines(number: int, finding: AdviceFinding) -> Iterator[str]:
    yield f"{number}. {in_one_line(finding.title)} ({worth(finding)})"
    for each in finding.evidence:
        yield f"   - {in_one_line(each)}"
    yield f"   > {in_one_line(finding.change.text)}"
    if finding.change.set:
        yield f"   > {options(finding.change)}"
    if finding.guide:
        yield f"   see {in_one_line(finding.guide)}"


def worth(finding: AdviceFinding) -> str:
    """Return how severe it is, and what the change saves."""
    if finding.saves == "cost":
        return f"{finding.severity}; saves {duration(finding.saving_node_s)} of nodes"
    saved = f"saves {duration(finding.saving_s)} of {duration(finding.saving_s + finding.predicted_s)}"
    if finding.saves == "risk":
        return f"{finding.severity}; endangers the job" + (f", {saved}" if finding.saving_s > 0 else "")
    return f"{finding.severity}; {saved}"


def options(change: Change) -> str:
    """The change as options of `parallelrun run` and `job create`."""
    return " ".join(f"--set {name}={value}" for name, value in change.set.items())
