"""The table of what other settings would give."""

from __future__ import annotations

from itertools import pairwise

import pytest

from parallelrun.cli.advise import lines_of_curve, some_of
from parallelrun_core.adviser.advice import AdviceCurve, CurvePoint


def points(*values: int) -> list[CurvePoint]:
    return [CurvePoint(value=value, seconds=600.0 / value, node_hours=1.0) for value in values]


def test_a_long_table_is_cut_to_what_one_reads_at_a_glance() -> None:
    shown = [point.value for point in some_of(points(*range(1, 65)), 37)]

    assert len(shown) <= 16
    assert {1, 2, 3, 37, 64} <= set(shown)
    assert shown == sorted(shown)
    steps = [after - before for before, after in pairwise(shown) if 37 not in (before, after)]
    assert steps == sorted(steps)


def test_a_short_one_is_shown_as_it_is() -> None:
    few = points(2, 4, 8)
    assert some_of(few, 3) == few


@pytest.mark.parametrize("is_range", [True, False])
def test_what_is_left_out_is_said(is_range: bool) -> None:
    """Values that somebody has listed are all shown."""
    curve = AdviceCurve(job_id="job_x", setting="nodes", now=4, seconds=150.0, points=points(*range(1, 65)))
    lines = [*lines_of_curve(curve, is_range=is_range)]
    assert (f"{len(lines) - 2} of 64 values; with -o json, all of them." in lines) == is_range
    assert sum(" now" in line for line in lines) == 1
