"""What the proofs about advice find when it is made in another way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.adviser.planted import planted
from parallelrun_core.adviser import schedule
from parallelrun_core.adviser.evidence import Floats
from parallelrun_core.adviser.reading.stretches import MOST_BYTES
from parallelrun_core.adviser.replay import Runs
from tests.twins.sabotage import expect_failure
from tests.unit.adviser import test_huge_jobs as huge_jobs
from tests.unit.adviser import test_planted as proofs

ADVISE_BY_ALL = """
import sys
from functools import partial
from parallelrun_core.adviser.reading import evidence
from tests.unit.adviser.advise_huge_job import main
evidence.read_tries = partial(evidence.read_tries, most_bytes=1 << 40)
main(*sys.argv[1:])
"""


def test_advice_that_divides_work_evenly_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def evenly(durations: Floats | Runs, ready: Sequence[float], each: float = 1.0) -> float:
        total_s = durations.total_s if isinstance(durations, Runs) else float(durations.sum())
        return max(ready) + each * total_s / len(ready)

    monkeypatch.setattr(schedule, "makespan", evenly)
    giant = next(each for each in planted() if each.finding == "giant_item")
    with expect_failure():
        proofs.test_what_is_planted_is_found_first_and_mended_as_predicted(giant)


@pytest.mark.slow
def test_advice_that_reads_all_of_a_huge_log_is_found(tmp_path: Path) -> None:
    _, grown_bytes = huge_jobs.advised(huge_jobs.job_of_a_million(tmp_path), "-c", ADVISE_BY_ALL)
    assert grown_bytes > huge_jobs.MEMORY_OF_READ * MOST_BYTES
