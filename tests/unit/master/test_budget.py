"""The budget of a job: when it closes, and how the job ends then."""

from __future__ import annotations

from parallelrun_core.wire.costs import usd_text
from parallelrun_core.wire.progress import Progress
from parallelrun_master.policy.budget import BudgetWatch


def test_budget_closes_once_and_ends_the_job_when_nothing_runs_any_more() -> None:
    progress = Progress(budget_usd=0.3, scheduled=60, done=8, failed=1)
    budget = BudgetWatch(progress)
    progress.spent_usd = 0.2
    assert not budget.closes()
    progress.spent_usd = 300_000_000 / 10**9
    assert budget.closes(), "it is used up to the last cent"
    assert not budget.closes(), "once"
    assert budget.failure(at_work=True) is None
    assert budget.failure(at_work=False) is None, "what ended a moment ago may not have been read"
    progress.spent_usd = 0.31
    failure = budget.failure(at_work=False)
    assert failure is not None
    assert failure.summary == (
        "The budget of $0.30 is used up: $0.31 were spent, and 9 of 60 mini-batches are decided."
    )


def test_budget_that_a_job_does_not_have_never_closes() -> None:
    budget = BudgetWatch(Progress(spent_usd=1e6))
    assert not budget.closes()
    assert not any(budget.failure(at_work=False) for _ in range(5))


def test_amount_for_people_has_cents_or_the_digits_that_a_small_one_needs() -> None:
    amounts = [0, 50, 1234.567, 0.5, 0.0800008, 0.00000015, 0.123456]
    texts = ["$0.00", "$50.00", "$1,234.57", "$0.50", "$0.08", "$0.00000015", "$0.1235"]
    assert [usd_text(usd) for usd in amounts] == texts
