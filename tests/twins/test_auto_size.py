"""What the proofs about `mini_batch_size: auto` find when a rule is broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parallelrun_master.planning.input_cuts import KnownInput
from parallelrun_master.policy import batch_size
from parallelrun_master.policy.trials import Trials
from parallelrun_master.publishing import scheduling
from parallelrun_master.publishing.sizing import Sizing
from tests.twins.sabotage import always, expect_failure
from tests.unit.master import test_batch_size as sizes
from tests.unit.master import test_sized_cutting as cutting
from tests.unit.master import test_trials as trials


def inner(test: Any) -> Any:
    """A test with examples of its own, to be called with one of ours."""
    return test.hypothesis.inner_test


def test_a_leader_that_cuts_again_what_is_cut_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "known_in", lambda _: KnownInput())
    with expect_failure():
        cutting.test_leaders_that_die_leave_each_file_in_one_mini_batch(tmp_path, deaths=1)


def test_a_leader_that_cuts_all_before_anything_is_measured_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sizing, "has_room", property(always(True)))
    with expect_failure():
        cutting.test_a_wave_of_single_files_waits_for_what_becomes_of_it()


def test_sizes_that_grow_without_bounds_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_size, "largest_after", always(10**9))
    quick = [batch_size.MeasuredTry(1, 0.001)] * 4
    with expect_failure():
        inner(sizes.test_no_mini_batch_is_much_larger_than_what_enough_others_had)(tries=quick, workers=1, most=10_000)


def test_sizes_that_leave_workers_idle_at_the_end_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "items_near_end", lambda choice, left, _: min(choice.items, left))
    with expect_failure():
        inner(sizes.test_at_the_end_each_worker_has_something)(
            choice=batch_size.Choice(1000, "", 0.01), left=900, workers=8
        )


def test_failures_that_count_as_quick_items_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def observed(sizing: Sizing, outcomes: Any) -> None:
        sizing._tries.extend(batch_size.MeasuredTry(each.items, each.run_s) for each in outcomes)

    monkeypatch.setattr(Sizing, "observe", observed)
    with expect_failure():
        cutting.test_failures_that_come_soon_make_nothing_larger()


def test_larger_mini_batches_that_are_cut_before_one_is_done_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trials, "may_begin", property(always(True)))
    with expect_failure():
        inner(trials.test_what_is_too_many_at_once_fails_a_few_mini_batches)(
            workers=8, most_good=600, count=60_000, category="RUN_EXCEPTION"
        )


def test_sizes_that_fail_for_ever_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trials, "failed", lambda trials, _, items: trials.stopped(items))
    with expect_failure():
        trials.test_nearly_all_of_a_large_input_gets_through()


def test_sizes_that_grow_while_items_become_slower_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_size, "_SLOWDOWN", 10**9)
    with expect_failure():
        sizes.test_items_that_become_slower_or_quicker_are_followed(workers=2)


def test_calls_that_count_as_items_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "seconds_of_call", always(0.0))
    with expect_failure():
        sizes.test_calls_that_take_long_by_themselves_are_few()
