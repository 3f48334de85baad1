"""A sample of a job's tries stands for all of them."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from parallelrun_core.adviser.advising import advise
from parallelrun_core.adviser.evidence import MeasuredSettings, Sample
from parallelrun_core.adviser.what_if import curve_of
from tests.unit.adviser.jobs import ids, went


@pytest.mark.parametrize("run_s", [0.02, 40.0])
def test_a_sample_has_the_findings_of_the_whole(run_s: float) -> None:
    """Mini-batches that are too small or too large are so in each part of a job."""
    work = np.random.default_rng(7).uniform(0.9, 1.1, 4000) * run_s
    straggler = [run_s * 400] if run_s > 1 else []
    whole = went([*work, *straggler])
    looked_at = np.arange(len(whole.tries)) // 400 % 5 == 0
    looked_at[-400:] = True
    sample = replace(
        whole,
        tries=whole.tries.where(looked_at),
        sample=Sample(len(looked_at) / looked_at.sum(), stretches=3),
    )

    assert ids(whole, least_s=1.0)
    assert ids(sample, least_s=1.0) == ids(whole, least_s=1.0)


def test_one_mini_batch_that_could_be_divided_without_end_takes_no_memory() -> None:
    evidence = went([1e-6] * 999 + [36_000.0], settings=MeasuredSettings(size=1 << 40, unit="bytes"), items=1 << 40)
    tracemalloc.start()
    try:
        advise(evidence)
        curve_of(evidence, "mini_batch_size", [1])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 100 << 20


def test_counts_of_a_sample_are_rounded_and_said_to_be_about_right() -> None:
    assert Sample().count(12_345) == "12,345"
    assert Sample(10.04, stretches=4).count(12_345) == "about 120,000"
