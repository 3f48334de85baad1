"""What becomes of files as the world writes them: no row is lost, and no value changed, without a word."""

from __future__ import annotations

import pytest

from tests.odd_files.cases import cases
from tests.odd_files.verdicts import Tally, judged

SEED = 1


@pytest.fixture(scope="module")
def tally() -> Tally:
    return judged(cases(SEED))


def test_odd_files_of_ordinary_kinds_are_read_to_the_letter_without_a_warning(tally: Tally) -> None:
    assert tally.counts["false_alarm"] == 0, tally.wrong
    assert tally.by_kind["ordinary", "exact"] >= 100


def test_odd_files_with_litter_beside_them_are_read_and_the_litter_is_named(tally: Tally) -> None:
    assert tally.by_kind["6 litter", "silent"] == 0, tally.wrong
    assert tally.by_kind["6 litter", "exact"] >= 40


@pytest.mark.parametrize("kind, exact", [
    ("1 whole numbers", 40), ("2 mismatches", 12), ("2a inference", 20), ("3 line ends", 45), ("4 encodings", 40),
    ("7 compression", 45), ("8 headers", 30), ("11 size", 16),
])  # fmt: skip
def test_odd_files_of_each_kind_are_read_to_the_letter_or_it_is_said(tally: Tally, kind: str, exact: int) -> None:
    assert tally.by_kind[kind, "silent"] == 0, tally.wrong
    assert tally.by_kind[kind, "exact"] >= exact


def test_odd_files_that_are_broken_fail_by_name(tally: Tally) -> None:
    assert tally.by_kind["5 broken", "silent"] == 0, tally.wrong
    assert tally.by_kind["5 broken", "refused"] >= 30
    assert tally.counts["silent"] == 0, tally.wrong
    assert tally.counts["exact"] >= 0.7 * tally.counts.total()
