"""The counts of a pipeline are those of the jobs that have run for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from parallelrun_core.pipelines.standing import StepStanding
from parallelrun_core.wire.progress import Progress
from parallelrun_master.pipelines.ending import summed


def standing(*, is_reused: bool = False, **counts: Any) -> StepStanding:
    return cast(
        "StepStanding", SimpleNamespace(result=SimpleNamespace(progress=Progress(**counts)), is_reused=is_reused)
    )


def test_pipeline_adds_up_the_counts_of_its_jobs_and_their_waits_by_limit() -> None:
    by_step = {
        "a": standing(done=2, rows=5, waits_s={"openai": 1.5}, chosen_why="it was slow"),
        "b": standing(done=1, failed=1, waits_s={"openai": 0.5, "search": 2.0}),
        "c": standing(done=9, is_reused=True),
    }

    total = summed(by_step)

    assert (total.done, total.failed, total.rows) == (3, 1, 5)
    assert total.waits_s == {"openai": 2.0, "search": 2.0}
    assert total.chosen_why == ""


def test_pipeline_can_add_up_whatever_progress_has() -> None:
    assert summed({"a": standing(), "b": standing()}).scheduled == 0
