"""A budget that is used up, or soon will be: what is left of the job isn't run then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from parallelrun_core.adviser.advice import AdviceFinding, Change
from parallelrun_core.adviser.findings.case import Case
from parallelrun_core.figures import percent
from parallelrun_core.wire.costs import usd_text

_NEARLY: Final = 0.8
"""Share of the budget from which on a job that runs should hear of it."""


def findings_of(case: Case) -> Iterator[AdviceFinding]:
    """Yield the finding that a budget is used up, or nearly."""
    evidence = case.evidence
    if not evidence.budget_usd:
        return
    share = evidence.spent_usd / evidence.budget_usd
    if share < (_NEARLY if evidence.is_running else 1):
        return
    budget, spent = usd_text(evidence.budget_usd), usd_text(evidence.spent_usd)
    is_used_up = share >= 1
    title = (
        f"The budget of {budget} is used up." if is_used_up else f"{percent(share)} of the budget of {budget} is spent."
    )
    yield AdviceFinding(
        id="budget",
        severity="severe" if is_used_up else "moderate",
        saves="risk",
        title=title,
        evidence=[f"{spent} were spent on {case.count(case.schedule.count)} mini-batches that were tried"],
        change=Change(
            text="When it is used up, nothing more is handed out, and the job ends. "
            f"`parallelrun job resume {evidence.job_id or 'ID'} --budget USD` goes on with more, what is spent "
            "included: what is done stays, and what the script remembers isn't paid for again."
        ),
    )
