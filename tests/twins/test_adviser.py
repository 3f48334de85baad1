"""What the proofs about advice find when it is made in another way."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.adviser.planted import planted
from parallelrun_core.adviser import schedule
from parallelrun_core.adviser.evidence import Floats
from parallelrun_core.adviser.replay import Runs
from tests.twins.sabotage import expect_failure
from tests.unit.adviser import test_planted as proofs


def test_advice_that_divides_work_evenly_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def evenly(durations: Floats | Runs, ready: Sequence[float], each: float = 1.0) -> float:
        total_s = durations.total_s if isinstance(durations, Runs) else float(durations.sum())
        return max(ready) + each * total_s / len(ready)

    monkeypatch.setattr(schedule, "makespan", evenly)
    giant = next(each for each in planted() if each.finding == "giant_item")
    with expect_failure():
        proofs.test_what_is_planted_is_found_first_and_mended_as_predicted(giant)
