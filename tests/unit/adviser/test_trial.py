"""From the first mini-batches of a job to how long all of it would take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from parallelrun_core.adviser.evidence import Evidence, MeasuredSettings, NodeUse
from parallelrun_core.adviser.schedule import TrySchedule
from parallelrun_core.adviser.trial import Trial
from tests.unit.adviser.jobs import went

WORK = np.random.default_rng(5).uniform(0.5, 1.5, 4000)


def first_of(evidence: Evidence, count: int) -> Evidence:
    """What is known of a job that is broken off."""
    some = evidence.tries.where(np.arange(len(evidence.tries)) < count)
    return replace(evidence, tries=some, seconds=float((some.started_s + some.elapsed_s).max()), is_running=True)


@pytest.mark.parametrize("count", [100, 1000, 4000])
def test_a_tenth_of_a_job_says_how_long_all_of_it_takes(count: int) -> None:
    whole = went(WORK.tolist(), after_s=0.0)
    trial = Trial(first_of(whole, count), len(WORK))

    assert (trial.tried, trial.mini_batches, trial.processes) == (count, len(WORK), 4)
    assert trial.seconds(1) == pytest.approx(TrySchedule(whole).measured_s, rel=0.05)
    assert trial.seconds(5) == pytest.approx(went(WORK.tolist(), nodes=5, after_s=0.0).seconds, rel=0.05)


def test_the_least_number_of_nodes_that_is_enough() -> None:
    trial = Trial(first_of(went(WORK.tolist()), 400), len(WORK))

    nodes = trial.nodes_for(200.0)
    assert nodes is not None
    assert trial.seconds(nodes) <= 200.0 < trial.seconds(nodes - 1)
    assert trial.nodes_for(1e6) == 1
    assert trial.nodes_for(0.5) is None  # init() alone takes longer


def test_what_is_advised_for_a_trial_can_be_tried() -> None:
    """Ten items for each of 0.02 s, in a job of which the trial has seen a hundredth."""
    tiny = first_of(went([0.002] * 4000, settings=MeasuredSettings(size=2)), 400)
    finding = Trial(tiny, 400_000).advised()
    assert finding is not None
    assert "mini_batch_size" in finding.change.set
    waiting = went([1.0] * 4000, columns_too={"cpu_s": [0.01] * 4000}, uses={"node000": NodeUse(cpus=8.0)})
    finding = Trial(first_of(waiting, 400), 4000).advised()
    assert finding is not None
    assert set(finding.change.set) == {"max_concurrency_per_instance"}


def test_nothing_is_advised_for_a_job_that_is_fine() -> None:
    assert Trial(first_of(went([10.0] * 4000, uses={"node000": NodeUse(cpus=4.0)}), 400), 4000).advised() is None
