"""The table of what other settings would give."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from parallelrun.cli.advise import _show_curve, some_of
from parallelrun.cli.output import OutputFormat
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
def test_what_is_left_out_is_said(is_range: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Values that somebody has listed are all shown."""
    curve = AdviceCurve(job_id="job_x", setting="nodes", now=4, seconds=150.0, points=points(*range(1, 65)))
    _show_curve(curve, OutputFormat.TABLE, is_range=is_range)
    text = capsys.readouterr().out
    assert (f"{len(text.splitlines()) - 2} of 64 values; with -o json, all of them." in text) == is_range
    assert " now" in text
    _show_curve(curve, OutputFormat.JSON, is_range=is_range)
    assert len(json.loads(capsys.readouterr().out)["points"]) == 64
