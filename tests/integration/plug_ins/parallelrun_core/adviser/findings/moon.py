"""Finds that every job has run on the wrong planet."""

from __future__ import annotations

from collections.abc import Iterator

from parallelrun_core.adviser.advice import AdviceFinding, Change
from parallelrun_core.adviser.findings.case import Case


def findings_of(case: Case) -> Iterator[AdviceFinding]:
    """One for each job."""
    yield AdviceFinding(
        id="wrong_planet",
        severity="low",
        saves="risk",
        title="The job ran on Earth.",
        evidence=[f"{len(case.evidence.tries)} tries, all of them there"],
        change=Change(text="Choose a compute of type moon."),
    )
