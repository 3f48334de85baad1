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
