"""Cutting by a size that changes: each file once, in order, and nothing before it is asked for."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.folder.manifest import read_manifest
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.interface import Page
from parallelrun_core.wire.message import decode, paths_of
from parallelrun_core.wire.outcome import ErrorCategory, Failure, Outcome
from parallelrun_core.wire.progress import Progress
from parallelrun_master.planning.cutting import Cut, cut_in_sizes
from parallelrun_master.publishing.scheduling import Scheduler
from parallelrun_master.publishing.sizing import MOST_AHEAD, Sizing
from tests.unit.core.factories import outcome
from tests.unit.master.test_cutting import chunks, paths

# A leader has a process of its own, which ends with it and so closes its files.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SPEC = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "mini_batch_size": "auto"})


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """What a leader has left open is found here, and not in the middle of somebody else's test."""
    yield
    gc.collect()


class Asked:
    """Sizes from a list, over and over; 0 is a time to wait."""

    def __init__(self, sizes: list[int], least: int) -> None:
        self._sizes = sizes
        self._least = least
        self._count = 0

    def next(self, found: int, *, has_more: bool, is_last: bool) -> int | None:
        if has_more and found < self._least:
            return None
        self._count += 1
        return min(found, self._sizes[self._count % len(self._sizes)])


@given(
    given_pages=chunks, sizes=st.lists(st.integers(0, 5), min_size=1, max_size=5).filter(any), least=st.integers(1, 30)
)
@settings(deadline=None, max_examples=200)
def test_each_file_comes_once_in_order(given_pages: list[Page], sizes: list[int], least: int) -> None:
    cuts = list(filter(None, cut_in_sizes(given_pages, Asked(sizes, least))))
    messages = [decode(each.raw) for each in cuts]
    assert [path for message in messages for path in paths_of(message).split(b"\0")] == paths(given_pages)
    assert [each.items for each in cuts] == [message.items for message in messages]
    assert all(0 < each.items <= max(sizes) for each in cuts)


def pages(count: int, each: int = 10) -> Iterator[Page]:
    for start in range(0, count, each):
        yield b"/in", [b"%07d" % number for number in range(start, min(count, start + each))]


def cut_now(cuts: Iterator[Cut | None], sizing: Sizing) -> list[int]:
    """What is cut until nothing more may be."""
    sizes = []
    for each in cuts:
        if each is not None:
            sizes.append(each.items)
        elif sizing.must_wait:
            break
    return sizes


def done(items: int, seconds: float, count: int) -> list[Outcome]:
    return [outcome(number, items=items, run_s=seconds) for number in range(count)]


def failed(items: int, category: ErrorCategory) -> Outcome:
    return outcome(0, items=items, status="retry", run_s=60.0, failure=Failure(category, "it failed"))


def test_a_wave_of_single_files_waits_for_what_becomes_of_it() -> None:
    sizing = Sizing(SPEC, 0)
    cuts = cut_in_sizes(pages(1000), sizing)
    sizing.refresh(0, workers=4)
    assert cut_now(cuts, sizing) == [1] * 8
    assert (sizing.found, sizing.has_found_all) == (992, True), "all is listed meanwhile"
    sizing.refresh(0, workers=4)
    assert (sizing.must_wait, cut_now(cuts, sizing)) == (True, [])

    sizing.observe(done(1, 0.01, 8))
    sizing.refresh(8, workers=4)
    assert not sizing.must_wait
    assert cut_now(cuts, sizing)[:4] == [8, 8, 8, 1], "few are larger than any that is done, until one of them is"
    sizing.observe(done(8, 0.08, 1))
    sizing.refresh(9, workers=4)
    assert set(cut_now(cuts, sizing)) == {8}


def test_nothing_is_listed_beyond_what_may_wait_in_memory() -> None:
    sizing = Sizing(SPEC, 0)
    listed = 0

    def many() -> Iterator[Page]:
        nonlocal listed
        for page in pages(10 * MOST_AHEAD, 1000):
            listed += len(page[1])
            yield page

    sizing.refresh(0, workers=1)
    cut_now(cut_in_sizes(many(), sizing), sizing)
    assert MOST_AHEAD <= listed <= MOST_AHEAD + 2000
    assert not sizing.has_found_all


def test_the_rest_of_an_input_that_others_follow_is_not_divided() -> None:
    for is_last, size in ((False, 8), (True, 3)):
        sizing = Sizing(SPEC, 8, done(1, 1.0, 8))
        sizing.refresh(8, workers=2)
        assert next(filter(None, cut_in_sizes(pages(10), sizing, is_last=is_last))).items == size


def test_a_job_with_fewer_files_than_workers_is_cut_at_once() -> None:
    sizing = Sizing(SPEC, 0)
    sizing.refresh(0, workers=16)
    cuts = list(islice(cut_in_sizes(pages(5), sizing), 100))
    assert [each.items for each in cuts if each is not None] == [1] * 5


def test_a_leader_goes_on_with_what_others_have_measured() -> None:
    first, second = Sizing(SPEC, 0), Sizing(SPEC, 100, done(64, 1.0, 100))
    for each in (first, second):
        each.refresh(100 if each is second else 0, workers=2)
    assert first.choice.items == 1
    assert second.choice.items == 256


def test_what_is_undecided_is_waited_for_also_by_another_leader() -> None:
    sizing = Sizing(SPEC, 100, done(64, 10.0, 60))
    sizing.refresh(60, workers=2)
    assert cut_now(cut_in_sizes(pages(1000), sizing), sizing) == []
    sizing.refresh(97, workers=2)
    assert len(cut_now(cut_in_sizes(pages(1000), sizing), sizing)) == 1


@pytest.mark.parametrize("category, is_smaller", [
    ("RUN_TIMEOUT", True), ("OOM_KILLED", True), ("GPU_OUT_OF_MEMORY", True), ("RUN_EXCEPTION", False),
    ("SIGNAL", False),
])  # fmt: skip
def test_what_is_too_much_makes_mini_batches_smaller(category: ErrorCategory, is_smaller: bool) -> None:
    sizing = Sizing(SPEC, 0, done(100, 10.0, 8))
    sizing.refresh(8, workers=2)
    before = sizing.choice.items
    sizing.observe([failed(100, category)])
    sizing.refresh(8, workers=2)
    assert (before, sizing.choice.items < before) == (100, is_smaller)


def test_failures_that_come_soon_make_nothing_larger() -> None:
    sizing = Sizing(SPEC, 0)
    sizing.observe([outcome(0, items=1, status="failed", run_s=0.001, failure=Failure("RUN_EXCEPTION", ""))] * 100)
    sizing.refresh(100, workers=2)
    assert sizing.choice.items == 1


def test_a_change_is_told_once() -> None:
    sizing, progress = Sizing(SPEC, 0), Progress()
    first = sizing.news()
    sizing.observe(done(1, 0.01, 8))
    sizing.refresh(8, workers=2)
    sizing.show(progress)
    second = sizing.news()
    assert first is not None
    assert second is not None
    assert (first.items, second.items) == (1, 8)
    assert sizing.news() is None
    assert (progress.chosen_size, "an item takes 10 ms" in progress.chosen_why) == (8, True)
    assert Counter(bool(each) for each in (first.why, second.why)) == {True: 2}


def files_of(folder: Path) -> list[bytes]:
    """All files in the manifest."""
    return [path for entry in read_manifest(folder) for path in paths_of(decode(entry.raw)).split(b"\0")]


@pytest.mark.parametrize("deaths", [1, 3])
def test_leaders_that_die_leave_each_file_in_one_mini_batch(tmp_path: Path, deaths: int) -> None:
    """Each cuts by other sizes than the one before."""
    inputs, folder = tmp_path / "in", tmp_path / "job"
    for path in (inputs, folder):
        path.mkdir()
    for number in range(300):
        (inputs / f"{number:07d}").touch()
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": str(inputs), "mini_batch_size": "auto"})
    for term in range(1, deaths + 1):
        measured = done(2 * term, 1.0, 8)
        leader = Scheduler(folder, spec, term, sizing=lambda cut, measured=measured: Sizing(spec, cut, measured))  # type: ignore[misc]
        assert leader.sizing is not None
        leader.sizing.refresh(leader.mini_batches, workers=2)
        while not leader.must_wait:
            assert leader.step(0.01), "all is cut before it may be"
        leader.stop()
    last = Scheduler(folder, spec, deaths + 1, sizing=lambda cut: Sizing(spec, cut))
    assert last.sizing is not None
    last.sizing.refresh(10**6, workers=2)
    while last.step(1.0):
        pass
    assert files_of(folder) == [os.fsencode(inputs / f"{number:07d}") for number in range(300)]
    assert last.closing is not None
    assert last.closing.items == 300


def test_what_is_cut_while_others_wait_for_a_store_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing more may be cut by then, and yet the leader has something to do."""
    (tmp_path / "in").mkdir()
    for number in range(100):
        (tmp_path / "in" / f"{number:03d}").touch()
    (tmp_path / "job").mkdir()
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": str(tmp_path / "in"), "mini_batch_size": "auto"})
    leader = Scheduler(tmp_path / "job", spec, 1, sizing=lambda cut: Sizing(spec, cut))
    sizing, answers, has_cut = leader.sizing, Event(), Event()
    assert sizing is not None
    sizing.refresh(0, workers=2)
    asked = sizing.next

    def slowly(found: int, *, has_more: bool, is_last: bool) -> int | None:
        answers.wait(10)
        size = asked(found, has_more=has_more, is_last=is_last)
        if sizing.must_wait:
            has_cut.set()
        return size

    monkeypatch.setattr(sizing, "next", slowly)
    leader._inputs.asks_stores = True
    assert leader.step(1.0)
    assert leader.mini_batches == 0
    answers.set()
    assert has_cut.wait(10)
    while not leader.must_wait:
        assert leader.step(1.0)
    assert leader.mini_batches == 4
    leader.stop()
