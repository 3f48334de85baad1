"""The replay is list scheduling: compared with the plain form of it, and with the bounds that hold for any."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_core.adviser import replay
from parallelrun_core.adviser.replay import Runs, joined, lower_bound, makespan, split

DURATIONS = st.lists(st.floats(0, 100), min_size=1, max_size=60)
READY = st.lists(st.floats(0, 50), min_size=1, max_size=8)


def by_hand(durations: list[float], ready: list[float]) -> float:
    """Whoever is free first takes the next one."""
    free = list(ready)
    for seconds in durations:
        first = free.index(min(free))
        free[first] += seconds
    return max(free)


@given(DURATIONS, READY)
def test_it_is_what_workers_do_that_take_the_next_one(durations: list[float], ready: list[float]) -> None:
    assert makespan(np.array(durations), ready) == pytest.approx(by_hand(durations, ready))


@given(DURATIONS, st.integers(1, 8))
def test_it_is_between_the_bounds(durations: list[float], lanes: int) -> None:
    work = np.array(durations)

    took = makespan(work, [0.0] * lanes)

    assert took >= lower_bound(work, lanes) - 1e-6
    assert took <= work.sum() / lanes + work.max() * (1 - 1 / lanes) + 1e-6  # Graham's bound


@given(DURATIONS, READY, st.floats(1, 10))
def test_longer_work_of_all_never_ends_sooner(durations: list[float], ready: list[float], factor: float) -> None:
    even = [float(np.mean(durations))] * len(durations)

    assert makespan(np.array(even) * factor, ready) >= makespan(np.array(even), ready) - 1e-6


@given(DURATIONS, READY)
def test_independent_work_never_ends_later_with_one_more_worker(durations: list[float], ready: list[float]) -> None:
    """Of list scheduling with an order that doesn't depend on what waits for what: Graham's anomalies need that."""
    more = [*ready, max(ready)]

    assert makespan(np.array(durations), more) <= makespan(np.array(durations), ready) + max(ready) + 1e-6


@given(DURATIONS, st.integers(1, 10))
def test_joining_and_dividing_keep_the_work(durations: list[float], factor: int) -> None:
    work = np.array(durations)
    items = np.full(len(work), 7)

    assert joined(work, factor).sum() == pytest.approx(work.sum())
    assert split(work, items, factor).total_s == pytest.approx(work.sum())
    assert split(work, items, factor).counts.sum() == len(work) * min(7, factor)
    assert split(work, items, factor, excess=work).seconds.max() == pytest.approx(work.max())


def test_a_million_mini_batches_are_nearly_as_exact_and_take_no_second(monkeypatch: pytest.MonkeyPatch) -> None:
    durations = np.random.default_rng(1).lognormal(1.0, 0.8, 200_000)
    ready = [float(each) for each in range(16)]
    quick = makespan(durations, ready)

    monkeypatch.setattr(replay, "_EXACT", len(durations))
    assert quick == pytest.approx(makespan(durations, ready), rel=0.005)
    monkeypatch.undo()
    million = np.resize(durations, 1_000_000)
    began = time.process_time()
    makespan(million, ready)
    assert time.process_time() - began < 1.0


@given(DURATIONS, READY, st.integers(1, 9))
def test_equal_mini_batches_in_a_row_are_scheduled_as_if_each_were_listed(
    durations: list[float], ready: list[float], times: int
) -> None:
    runs = Runs(np.array(durations), np.full(len(durations), times))

    assert makespan(runs, ready) == pytest.approx(makespan(np.repeat(durations, times), ready))


@pytest.mark.parametrize("giant", [0.0, 3e6])
def test_a_job_divided_into_billions_is_scheduled_in_little_time_and_memory(giant: float) -> None:
    work = np.random.default_rng(2).lognormal(1.0, 0.8, 50_000)
    work[100] += giant
    items = np.full(len(work), 1_000_000)
    tracemalloc.start()
    began = time.process_time()
    try:
        took = makespan(split(work, items, 10**8, 1e-9, np.where(work > 1e6, work, 0.0)), [0.0] * 64)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert took == pytest.approx(lower_bound(work + 1e-3, 64) + (giant > 0) * work[:100].sum() / 64, rel=0.01)
    assert peak < 64 << 20
    assert time.process_time() - began < 3.0


def test_a_sample_stands_for_the_whole() -> None:
    """Of a job with so many mini-batches as the sample says, the time is that of all of them."""
    work = np.random.default_rng(3).lognormal(1.0, 0.8, 200_000)
    ready = [float(each) for each in range(16)]

    assert makespan(work[::10], ready, each=10.0) == pytest.approx(makespan(work, ready), rel=0.02)


def test_there_is_no_schedule_without_workers() -> None:
    with pytest.raises(ValueError, match="without a worker"):
        makespan(np.ones(3), [])
