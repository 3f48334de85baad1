"""What the proofs about shown waits find when a part of the mechanism is gone."""

from __future__ import annotations

from unittest.mock import patch

from parallelrun_core.adviser.findings import budget, waits
from parallelrun_core.folder.decided import Decided
from tests.twins.sabotage import expect_failure, nothing
from tests.unit import test_waits as proofs


def test_waits_that_nobody_adds_up_are_found() -> None:
    with patch.object(Decided, "_count_waits", nothing), expect_failure():
        proofs.test_waits_are_added_up_once_for_each_decision_and_taken_out_with_it()


def test_waits_that_the_adviser_takes_for_work_are_found() -> None:
    with patch.object(waits, "_BINDS", 2.0), expect_failure():
        proofs.test_waits_make_the_adviser_name_the_limit_in_place_of_nodes_and_workers()


def test_budgets_of_which_the_adviser_says_nothing_are_found() -> None:
    with patch.object(budget, "_NEARLY", 2.0), expect_failure():
        proofs.test_budget_that_is_used_up_or_soon_will_be_is_what_the_adviser_says_first()
