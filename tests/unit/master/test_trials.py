"""Mini-batches larger than any that is done: few are cut until one is, and what never gets through is not cut again."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.outcome import ErrorCategory, Failure, Outcome
from parallelrun_master.policy.batch_size import largest_after
from parallelrun_master.policy.trials import MOST_TRIALS, Trials
from parallelrun_master.publishing.sizing import Sizing
from tests.unit.core.factories import outcome

SPEC = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "mini_batch_size": "auto"})


def test_few_are_cut_until_one_is_done() -> None:
    trials = Trials(1000)
    for _ in range(MOST_TRIALS):
        assert trials.may_begin
        trials.cut(8)
        trials.refresh()
    assert not trials.may_begin
    trials.done(8)
    trials.refresh()
    assert (trials.proven, trials.may_begin) == (8, True)


def test_when_all_fail_half_as_many_are_tried_unless_one_is_done_after_all() -> None:
    trials = Trials(1000)
    trials.done(10)
    for number in range(MOST_TRIALS):
        assert trials.most == 1000
        trials.cut(40)
        trials.failed(number, 40)
        trials.failed(number, 40)  # and is told twice
        trials.refresh()
    assert (trials.most, trials.may_begin) == (20, True)
    trials.done(40)
    assert (trials.most, trials.proven) == (40, 40)


def test_a_trial_that_took_too_long_sets_no_bound() -> None:
    trials = Trials(1000)
    for _ in range(10):
        trials.cut(8)
        trials.stopped(8)
        trials.refresh()
    assert (trials.most, trials.may_begin) == (1000, True)


@dataclass
class Went:
    """How a simulated job went."""

    sizes: list[int]
    failed: list[int]
    most_trials: int
    """The most that were undecided at once of what was larger than any that was done."""


def went(
    count: int, workers: int, most_good: int, *, bad: frozenset[int] = frozenset(), item_s: float = 0.001,
    category: ErrorCategory = "RUN_EXCEPTION", lives: int = 10**9,
) -> Went:  # fmt: skip
    """Run a job where larger mini-batches than this fail, and those with a bad item.

    Args:
        lives: after so many decisions, another leader goes on with what the last one has recorded.
    """
    sizing = Sizing(SPEC, 0)
    decided: list[Outcome] = []
    running: deque[tuple[int, int]] = deque()
    at, proven = 0, 1
    sizes: list[int] = []
    failed: list[int] = []
    most_trials = 0
    while True:
        sizing.refresh(len(decided), workers)
        while items := sizing.next(count - at, has_more=False, is_last=True):
            running.append((at, items))
            sizes.append(items)
            at += items
        most_trials = max(most_trials, sum(items > proven for _, items in running))
        if not running:
            return Went(sizes, failed, most_trials)
        first, items = running.popleft()
        is_good = items <= most_good and bad.isdisjoint(range(first, first + items))
        failure = None if is_good else Failure(category, "it failed")
        status = "done" if is_good else "failed"
        decided.append(outcome(len(decided), items=items, run_s=items * item_s, status=status, failure=failure))
        if is_good:
            proven = max(proven, items)
        else:
            failed.append(items)
        if len(decided) % lives:
            sizing.observe(decided[-1:])
        else:
            sizing = Sizing(SPEC, len(sizes), decided)


@given(
    workers=st.integers(1, 30), most_good=st.integers(1, 10_000), count=st.integers(1, 60_000),
    category=st.sampled_from(["RUN_EXCEPTION", "SIGNAL", "EXITED", "NODE_LOST", "OOM_KILLED", "GPU_OUT_OF_MEMORY"]),
)  # fmt: skip
@settings(deadline=None, max_examples=60)
def test_what_is_too_many_at_once_fails_a_few_mini_batches(
    workers: int, most_good: int, count: int, category: ErrorCategory
) -> None:
    job = went(count, workers, most_good, category=category)
    assert sum(job.sizes) == count
    # Sizes grow by four, or eight while small, and are halved: at most two are too many, and a third that a smaller
    # one left over.
    assert len(job.failed) <= 3 * MOST_TRIALS
    assert max(job.failed, default=0) <= largest_after(most_good)
    assert job.most_trials <= MOST_TRIALS


def test_nearly_all_of_a_large_input_gets_through() -> None:
    job = went(200_000, 8, 600)
    assert sum(job.failed) < 0.04 * 200_000
    assert max(size for size in job.sizes if size not in job.failed) > 300


@given(seed=st.integers(0, 10**6), share=st.floats(0, 0.5), workers=st.integers(1, 16), lives=st.integers(2, 50))
@settings(deadline=None, max_examples=40)
def test_bad_items_and_other_leaders_end_no_job_before_its_end(
    seed: int, share: float, workers: int, lives: int
) -> None:
    draw = random.Random(seed)
    bad = frozenset(number for number in range(3000) if draw.random() < share)
    assert sum(went(3000, workers, 10**6, bad=bad, lives=lives).sizes) == 3000


@pytest.mark.parametrize("workers", [1, 100])
def test_jobs_without_failures_grow_as_far_as_ever(workers: int) -> None:
    job = went(100_000 * workers, workers, 10**6, item_s=0.01)
    assert max(job.sizes) > 900
    assert job.most_trials <= MOST_TRIALS
