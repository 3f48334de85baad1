"""The size that a job chooses for its mini-batches: one item at first, then about 10 s, and no idle workers at last."""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_master.policy.batch_size import (
    GROWTH,
    LEAST_S,
    MOST_ITEMS,
    TARGET_S,
    Choice,
    MeasuredTry,
    choose,
    items_near_end,
    items_to_know,
    largest_after,
    mini_batches_ahead,
    seconds_of_call,
    short_s,
    target_s,
    tries_needed,
)

measured = st.builds(
    MeasuredTry, items=st.integers(1, 20_000), seconds=st.floats(0, 1000, allow_nan=False), is_done=st.booleans()
)
some_tries = st.lists(measured, max_size=60)
choices = st.builds(
    Choice, items=st.integers(1, MOST_ITEMS), why=st.just(""), item_s=st.none() | st.floats(1e-6, 100),
    is_growing=st.booleans(), call_s=st.floats(0, 100),
)  # fmt: skip


@given(tries=some_tries, workers=st.integers(0, 20), most=st.integers(1, MOST_ITEMS))
def test_no_mini_batch_is_much_larger_than_what_enough_others_had(
    tries: list[MeasuredTry], workers: int, most: int
) -> None:
    choice = choose(tries, workers, TARGET_S, most)
    done = sorted((each.items for each in tries if each.is_done), reverse=True)
    count = tries_needed(workers, 1)
    tried = max(done[0], largest_after(done[count - 1]) if len(done) >= count else 0) if done else 1
    assert 1 <= choice.items <= min(MOST_ITEMS, most)
    assert choice.items <= tried
    for per_worker, most_s in ((2, LEAST_S), (4, 1.0)):
        count = tries_needed(workers, per_worker)
        usual = max(done[0], largest_after(done[count - 1]) if len(done) >= count else 0) if done else 1
        if choice.item_s and choice.items > max(usual, GROWTH):
            assert choice.items * choice.item_s <= most_s, "so few tries suffice for short ones only"
    assert choice.why


@given(items=st.integers(2, 5000), item_s=st.floats(1e-5, 0.1), workers=st.integers(1, 8))
def test_what_was_stopped_makes_mini_batches_smaller(items: int, item_s: float, workers: int) -> None:
    done = [MeasuredTry(items, items * item_s)] * 2 * tries_needed(workers)
    stopped = MeasuredTry(items, 60.0 + items * item_s, is_done=False)
    assert choose([*done, stopped], workers, TARGET_S).items <= choose(done, workers, TARGET_S).items
    assert choose([*done, *[stopped] * 2 * workers], workers, TARGET_S).items <= max(1, items // 2)


@pytest.mark.parametrize("workers", [1, 100])
def test_what_only_fails_or_is_stopped_stays_at_one_item(workers: int) -> None:
    assert choose([], workers, TARGET_S).items == 1
    assert choose([MeasuredTry(1, 60.0, is_done=False)] * 100, workers, TARGET_S).items == 1


@given(choice=choices, left=st.integers(1, 10**6), workers=st.integers(0, 5000))
def test_at_the_end_each_worker_has_something(choice: Choice, left: int, workers: int) -> None:
    size = items_near_end(choice, left, workers)
    assert 1 <= size <= min(choice.items, left)
    mini_batches = -(-left // size)
    is_short = choice.item_s is not None and (size - 1) * choice.item_s <= short_s(choice.call_s)
    assert mini_batches >= min(left, max(1, workers)) or is_short


def test_the_last_ones_are_equal() -> None:
    left, sizes = 142, []
    while left:
        sizes.append(items_near_end(Choice(1000, "", 0.002), left, 2))
        left -= sizes[-1]
    assert sizes == [71, 71]


@given(choice=choices, workers=st.integers(0, 5000), more=st.integers(0, 1000))
def test_what_is_known_to_be_ahead_is_enough_not_to_shrink(choice: Choice, workers: int, more: int) -> None:
    assert items_near_end(choice, items_to_know(choice, workers) + more, workers) == choice.items


@given(choice=choices, workers=st.integers(0, 5000))
def test_no_worker_waits_for_the_leader_and_little_is_cut_ahead(choice: Choice, workers: int) -> None:
    ahead, workers = mini_batches_ahead(choice, workers), max(1, workers)
    # Whoever waits for the leader after seconds of work loses little, and no small one is then ahead of larger ones.
    assert workers * (1 if choice.item_s is None or choice.is_growing else 2) <= ahead <= 4 * workers
    if choice.item_s is not None and max(choice.items * choice.item_s, choice.call_s) < 0.1:
        assert ahead >= 2 * workers


# Whole jobs, without a cluster: workers that take what is cut as soon as it is.

COST_S = 0.002
"""What a mini-batch costs beside its items."""


@dataclass
class Went:
    """How a simulated job went."""

    seconds: float
    ideal_s: float
    sizes: list[int]
    stopped: int


def went(times_s: list[float], workers: int, *, timeout_s: float = 60.0, call_s: float = 0.0) -> Went:
    """Run a job whose items take so long, and each call so much more. A mini-batch that takes too long is stopped, and
    not tried again."""
    tries: list[MeasuredTry] = []
    quickest_s: dict[int, float] = {}
    sizes: list[int] = []
    running: list[tuple[float, int, float]] = []
    waiting: deque[tuple[int, float]] = deque()
    at = stopped = 0
    now = 0.0
    while True:
        measured_s = seconds_of_call(quickest_s)
        choice = choose(tries, workers, target_s(timeout_s, measured_s), call_s=measured_s or 0.0)
        while at < len(times_s) and len(waiting) + len(running) < mini_batches_ahead(choice, workers):
            size = items_near_end(choice, len(times_s) - at, workers)
            waiting.append((size, call_s + sum(times_s[at : at + size])))
            sizes.append(size)
            at += size
        while waiting and len(running) < workers:
            size, seconds = waiting.popleft()
            heapq.heappush(running, (now + min(seconds, timeout_s) + COST_S, size, seconds))
        if not running:
            return Went(now, sum(times_s) / workers, sizes, stopped)
        now, size, seconds = heapq.heappop(running)
        tries.append(MeasuredTry(size, min(seconds, timeout_s), is_done=seconds <= timeout_s))
        stopped += seconds > timeout_s
        if seconds <= timeout_s:
            quickest_s[size] = min(seconds, quickest_s.get(size, seconds))


@pytest.mark.parametrize("workers", [1, 4, 30])
@pytest.mark.parametrize("item_s", [0.001, 0.1, 12.0])
def test_a_job_of_equal_items_takes_little_longer_than_its_items(item_s: float, workers: int) -> None:
    job = went([item_s] * min(200_000, int(400 * workers / item_s)), workers)

    assert sum(job.sizes) == min(200_000, int(400 * workers / item_s))
    assert job.seconds < 1.05 * job.ideal_s + item_s
    assert job.stopped == 0
    if item_s > TARGET_S:
        assert set(job.sizes) == {1}
    else:
        assert max(job.sizes) * item_s <= 1.01 * TARGET_S


def test_calls_that_take_long_by_themselves_are_few() -> None:
    """As few as sizes that grow by four or eight need, when the best is one for each worker."""
    for workers in (1, 2, 8):
        for call_s, timeout_s in ((0.2, 60.0), (1.0, 60.0), (12.0, 600.0)):
            for item_s in (0.00005, 0.02, 0.3):
                job = went([item_s] * 5000 * workers, workers, timeout_s=timeout_s, call_s=call_s)
                assert job.seconds < call_s + 1.1 * job.ideal_s + 16 * call_s
                assert job.stopped == 0


def test_what_a_call_takes_is_told_from_what_items_take() -> None:
    assert seconds_of_call({}) is seconds_of_call({1: 5.0, 3: 5.0}) is None, "of hardly any, nobody can say"
    assert seconds_of_call({1: 0.5, 8: 4.0}) == 0
    assert seconds_of_call({1: 1.5, 100: 51.0}) == pytest.approx(1.0, abs=0.02)
    assert seconds_of_call({1: 0.01, 2: 9.0, 8: 4.0}) == 0, "one quick item is enough to doubt it"


def test_sizes_come_to_about_ten_seconds() -> None:
    sizes = went([0.015] * 100_000, 4).sizes
    assert sizes[:8] == [1] * 8
    assert sizes[15] == 8, "a try of each worker suffices for what is so short"
    assert max(sizes) * 0.015 == pytest.approx(TARGET_S, rel=0.1)
    assert len(sizes) < 380, "152 of ten seconds, what measures, and smaller ones at the end"


@pytest.mark.parametrize("workers", [2, 16])
def test_items_that_become_slower_or_quicker_are_followed(workers: int) -> None:
    """By 4 % with each forty of them: from 1 ms to a second, and back."""
    slower = [min(1.0, 0.001 * 1.04 ** (number / 40)) for number in range(8000)]
    for times_s in (slower, slower[::-1]):
        job = went(times_s, workers)
        assert job.stopped == 0
        assert job.seconds < 1.15 * job.ideal_s + max(times_s)


@given(
    seed=st.integers(0, 10**6), spread=st.floats(0, 2), usual_s=st.floats(0.001, 3), workers=st.integers(1, 16),
    count=st.integers(1, 4000),
)  # fmt: skip
@settings(deadline=None, max_examples=60)
def test_a_job_of_any_items_ends_soon_after_its_share_of_work(
    seed: int, spread: float, usual_s: float, workers: int, count: int
) -> None:
    draw = random.Random(seed)
    times_s = [min(30.0, draw.lognormvariate(0, spread) * usual_s) for _ in range(count)]
    job = went(times_s, workers, timeout_s=1e9)
    assert sum(job.sizes) == count
    # One worker may be left with a mini-batch, and with an item that takes long.
    assert job.seconds < 1.35 * job.ideal_s + 2 * TARGET_S + max(times_s)
