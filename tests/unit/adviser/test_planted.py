"""Each bottleneck that is planted in a simulated cluster is found first, and mending it gains what was predicted.

Real ones are in `make bench B=adviser`.
"""

from __future__ import annotations

import pytest

from benchmarks.adviser.cases import play
from benchmarks.adviser.planted import Planted, error_of_nodes, planted

WITHIN = 0.10


@pytest.mark.parametrize("each", planted(), ids=lambda each: each.name)
def test_what_is_planted_is_found_first_and_mended_as_predicted(each: Planted) -> None:
    outcome = play(each.case())

    assert outcome.is_first, outcome.said
    assert outcome.is_silent, outcome.said
    assert outcome.error < WITHIN, outcome.said


def test_other_numbers_of_nodes_take_as_long_as_computed() -> None:
    assert error_of_nodes((1, 4, 8), mini_batches=120) < 0.05
