"""The budget of a job: when no more of it is handed out, and how it ends then. Pure, no I/O."""

from __future__ import annotations

from typing import Final

from parallelrun_core.wire.costs import usd_text
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.progress import Progress

_QUIET_CHECKS: Final = 2
"""Checks in a row at which no node works for the job: all that was reported before the first is recorded by then."""


class BudgetWatch:
    """Watches the cost of one job.

    Args:
        progress: kept up to date by the ledger, read here.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._quiet_checks = 0
        self.is_closed = False
        """Nothing more is handed out."""

    def closes(self) -> bool:
        """Return whether the budget is used up, and was not when this was asked last."""
        if self.is_closed or not self._progress.is_used_up:
            return False
        self.is_closed = True
        return True

    def failure(self, *, at_work: bool) -> JobFailure | None:
        """Return how the job ends, once all is finished that ran when the budget was used up.

        Args:
            at_work: a node works for the job, or a mini-batch is with one.
        """
        self._quiet_checks = 0 if at_work else self._quiet_checks + 1
        progress = self._progress
        if not self.is_closed or self._quiet_checks < _QUIET_CHECKS:
            return None
        return JobFailure(
            code="BUDGET_USED_UP",
            summary=(
                f"The budget of {usd_text(progress.budget_usd)} is used up: {usd_text(progress.spent_usd)} were spent, "
                f"and {progress.decided:,} of {progress.scheduled:,} mini-batches are decided."
            ),
            hint="resume it with a larger budget, `parallelrun job resume ID --budget USD`: what is done stays",
        )
