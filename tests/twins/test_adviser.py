"""What the proofs about advice find when it is made in another way."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.adviser.planted import planted
from parallelrun_core.adviser import schedule
from parallelrun_core.adviser.evidence import Floats
from tests.twins.sabotage import expect_failure
from tests.unit.adviser import test_planted as proofs


def test_advice_that_divides_work_evenly_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def evenly(durations: Floats, ready: Sequence[float]) -> float:
        return float(max(ready) + durations.sum() / len(ready))

    monkeypatch.setattr(schedule, "makespan", evenly)
    giant = next(each for each in planted() if each.finding == "giant_item")
    with expect_failure():
        proofs.test_what_is_planted_is_found_first_and_mended_as_predicted(giant)
