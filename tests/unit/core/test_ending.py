"""The sentence about how a job has ended: what failed and why, and that too few rows are no failure in words."""

from __future__ import annotations

from typing import Any

import pytest

from parallelrun_core.wire.ending import how_completed, what_failed, what_is_short
from parallelrun_core.wire.error_kinds import exception_of, normalized, short_place
from parallelrun_core.wire.failure import ErrorCount
from parallelrun_core.wire.outcome import Failure
from parallelrun_core.wire.progress import Progress


def cause(category: str = "RUN_EXCEPTION", exception: str = "ValueError", place: str = "score.py:17") -> ErrorCount:
    return ErrorCount(category=category, message="m", count=1, exception=exception, place=place)


def progress(**counts: Any) -> Progress:
    return Progress(scheduled=500, listing_done=True, items_scheduled=5000, **counts)


@pytest.mark.parametrize(
    "counts, causes, sentence",
    [
        ({"items_done": 5000}, [], ""),
        (
            {"items_done": 4850, "items_failed": 150, "failed": 15},
            [cause()],
            ", but 150 of 5,000 items failed (3 %): ValueError in score.py:17",
        ),
        (
            {"items_done": 4999, "items_failed": 1, "failed": 1},
            [cause("OOM_KILLED", "", ""), cause(), cause()],
            ", but 1 of 5,000 items failed (0.02 %): the memory ran out, and 2 more kinds of error",
        ),
        (
            {"items_done": 1, "items_failed": 4999, "failed": 499},
            [cause(place=""), cause()],
            ", but 4,999 of 5,000 items failed (more than 99 %): ValueError, and 1 more kind of error",
        ),
        (
            {"items_done": 4700, "items_failed": 300, "items_estimated": 100, "failed": 30},
            [cause("INPUT_UNREADABLE", "", "")],
            ", but about 300 of about 5,000 items failed (6 %, 100 of them estimated: their data could not be read): "
            "the input can't be read",
        ),
        (
            {"items_done": 40, "items_failed": 4960, "items_short": 4960, "rows": 40},
            [],
            ", made 40 rows of 5,000 items",
        ),
        (
            {"items_done": 40, "items_failed": 4960, "items_short": 4950, "rows": 40, "failed": 1},
            [cause()],
            ", but 10 of 5,000 items failed (0.2 %): ValueError in score.py:17; it made 40 rows of 4,990 items",
        ),
        ({"failed": 3, "done": 1}, [], ", but 3 of 4 mini-batches failed"),
    ],
)
def test_ending_says_what_failed_and_why(counts: dict[str, int], causes: list[ErrorCount], sentence: str) -> None:
    assert how_completed(progress(**counts), causes) == sentence


def test_ending_never_calls_items_failed_that_are_only_without_a_row() -> None:
    aggregating = Progress(done=20, items_done=20, items_failed=11_960, items_short=11_960, rows=20)
    assert what_failed(aggregating) == ""
    assert what_is_short(aggregating) == "made 20 rows of 11,980 items"
    assert "failed" not in how_completed(aggregating)


def test_ending_names_an_exception_by_type_and_innermost_place_in_the_code() -> None:
    traceback = (
        '  File "score.py", line 9, in run\n  File "lib/parse.py", line 17, in parse\n  File "/usr/x.py", line 3'
    )
    failure = Failure("RUN_EXCEPTION", "pkg.BadFile: '/data/7.csv' has 3 columns", traceback)
    assert (exception_of(failure), short_place(traceback)) == ("pkg.BadFile", "lib/parse.py:17")
    assert normalized(failure.message) == "pkg.BadFile: … has … columns"
    assert (exception_of(Failure("SIGNAL", "The worker was ended: x")), short_place("")) == ("", "")
