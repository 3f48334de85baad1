"""Mini-batches that wait for permits of a limit: more workers or nodes would wait, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from parallelrun_core.adviser.advice import AdviceFinding, Change
from parallelrun_core.adviser.findings.case import Case
from parallelrun_core.figures import duration, percent

_BINDS: Final = 0.2
"""Share of the time from which on a limit, and not the number of workers, says how long a job takes."""


def findings_of(case: Case) -> Iterator[AdviceFinding]:
    """Yield the finding that a limit binds."""
    evidence = case.evidence
    limit, waited_s = max(evidence.waits_s.items(), key=lambda each: each[1], default=("", 0.0))
    share = waited_s / max(1e-9, evidence.waits_of_s)
    if share < _BINDS:
        return
    yield AdviceFinding(
        id="limit_binds",
        severity="low",
        saves="cost",
        title=f"Mini-batches wait for {limit} {percent(share)} of their time: more nodes won't help.",
        evidence=[
            f"they have waited {duration(waited_s)} of {duration(evidence.waits_of_s)} for permits, all added up; "
            "that is no time of run(), and of no worker"
        ],
        change=Change(
            text=f"Raise the limit {limit}, if the service allows it, or make fewer calls: several items in one, or "
            "none for what is remembered. If the service has refused calls (429), fewer begin for minutes than the "
            "limit says. Fewer workers, or fewer nodes, would take as long."
        ),
    )
