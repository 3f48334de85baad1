"""When a job must fail: more than a threshold, never at it; init() that gets nowhere; nothing that moves."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.outcome import ErrorCategory, Failure
from parallelrun_core.progress import Progress
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.leader_queue import InitFailure
from parallelrun_master.policy.verdict import (
    Errors,
    InitWatch,
    StallWatch,
    files_of,
    nothing_returned,
    over_threshold,
    with_cause,
)
from tests.unit.core.making import failed, outcome


def spec(**fields: Any) -> JobSpec:
    return JobSpec.parse({"entry_script": "a.py", "inputs": "/x", **fields})


def progress(**fields: Any) -> Progress:
    return Progress(**{"scheduled": 100, "listing_done": True, **fields})


@pytest.mark.parametrize("threshold, items_failed, fails", [
    (-1, 10**9, False), (0, 0, False), (0, 1, True), (5, 5, False), (5, 6, True),
])  # fmt: skip
def test_more_items_than_the_threshold_fail_the_job(threshold: int, items_failed: int, fails: bool) -> None:
    failure = over_threshold(spec(error_threshold=threshold), progress(items_failed=items_failed), Errors())
    assert (failure is not None) == fails
    if failure is not None:
        assert failure.code == "THRESHOLD_CROSSED"
        assert "error_threshold" in failure.summary


@pytest.mark.parametrize("threshold, count, fails", [
    (-1, 100, False), (0, 0, False), (0, 1, True), (5, 5, False), (5, 6, True),
])  # fmt: skip
@pytest.mark.parametrize("listing_done", [True, False])
def test_more_mini_batches_than_the_threshold_fail_the_job(
    threshold: int, count: int, fails: bool, listing_done: bool
) -> None:
    settings_ = spec(mini_batch_error_threshold=threshold)
    failure = over_threshold(settings_, progress(failed=count, listing_done=listing_done), Errors())
    assert (failure is not None) == fails


@pytest.mark.parametrize("percent, count, fails", [
    (100, 100, False), (10, 10, False), (10, 11, True), (0, 0, False), (0, 1, True), (33.3, 33, False),
    (33.3, 34, True), (99.9, 100, True),
])  # fmt: skip
def test_a_greater_percentage_than_allowed_fails_the_job_once_all_is_scheduled(
    percent: float, count: int, fails: bool
) -> None:
    settings_ = spec(allowed_failed_percent=percent)
    assert (over_threshold(settings_, progress(failed=count), Errors()) is not None) == fails
    assert over_threshold(settings_, progress(failed=count, listing_done=False), Errors()) is None


def test_an_empty_job_is_not_over_any_percentage() -> None:
    assert over_threshold(spec(allowed_failed_percent=0), progress(scheduled=0), Errors()) is None


def test_the_verdict_names_the_first_cause() -> None:
    errors = Errors()
    errors.add(failed(7, message="ValueError: bad file"))
    errors.add(failed(8, message="KeyError: 'x'"))
    failure = over_threshold(spec(mini_batch_error_threshold=0), progress(failed=2), errors)
    assert failure is not None
    assert failure.first_cause == "RUN_EXCEPTION: ValueError: bad file"
    assert failure.sample_mini_batches == [7]
    assert failure.traceback == "Traceback"
    assert nothing_returned(progress(failed=2), errors).first_cause == failure.first_cause
    assert with_cause(failure, Errors()) == failure


def test_a_job_without_a_row_is_told_whether_run_failed_or_returned_nothing() -> None:
    silent = nothing_returned(progress(scheduled=3, failed=0), Errors())
    assert (silent.code, "returned no row" in silent.summary, bool(silent.hint)) == ("NO_ROWS", True, True)
    broken = nothing_returned(progress(scheduled=3, failed=3), Errors())
    assert (broken.code, broken.hint) == ("NO_ROWS", "")
    assert "all mini-batches failed (3)" in broken.summary


@pytest.mark.parametrize(
    "message, items_failed, says",
    [
        ("ValueError: bad", 30, "mini_batch_size: 1"),
        ("ValueError: bad", 3, ""),
        ("ModuleNotFoundError: No module named 'x'", 30, "environment: {pip: [NAME]}"),
    ],
)
def test_a_run_that_raises_is_told_with_what_to_do(message: str, items_failed: int, says: str) -> None:
    errors, counts = Errors(), progress(scheduled=3, failed=3, items_failed=items_failed)
    errors.add(failed(0, message=message))
    crossed = over_threshold(spec(mini_batch_error_threshold=0), counts, errors)
    assert crossed is not None
    for failure in (crossed, nothing_returned(counts, errors)):
        assert says in failure.hint
        assert bool(failure.hint) == bool(says)


def test_items_that_are_missing_without_an_error_are_explained() -> None:
    failure = over_threshold(spec(error_threshold=2), progress(items_failed=3), Errors())
    assert failure is not None
    assert "returned fewer rows" in failure.hint


# Error signatures


def test_errors_that_look_alike_are_one_signature_told_once() -> None:
    errors = Errors()
    told = [errors.add(failed(number, message=f"ValueError: bad\nline {number}")) for number in range(5)]
    assert [found is not None for found in told] == [True, False, False, False, False]
    (signature,) = errors.most_common(5)
    assert (signature.count, signature.mini_batches) == (5, [0, 1, 2])
    assert errors.first is signature


def test_the_commonest_come_first_and_the_first_stays_the_first() -> None:
    errors = Errors()
    for message, count in (("a", 1), ("b", 3), ("c", 2)):
        for number in range(count):
            errors.add(failed(number, message=message))
    assert [signature.message for signature in errors.most_common(2)] == ["b", "c"]
    assert errors.first is not None
    assert errors.first.message == "a"
    assert errors.add(outcome(1)) is None


def test_a_million_different_errors_need_no_memory_and_are_not_all_told() -> None:
    errors = Errors()
    told = sum(errors.add(failed(number, message=f"E{number}")) is not None for number in range(3000))
    assert told == 1000
    assert len(errors.most_common(10_000)) == 1000


@pytest.mark.parametrize(
    "items, files, told", [(10, ["a", "b", "c"], ["a", "b", "c", "…"]), (2, ["a", "b"], ["a", "b"]), (9, [], [])]
)
def test_the_first_files_of_a_mini_batch_do_not_look_like_all(items: int, files: list[str], told: list[str]) -> None:
    assert files_of(msgspec.json.encode({"id": 4, "items": items, "files": files}).decode()) == told


# init()


def init_failure(category: ErrorCategory = "INIT_EXCEPTION", message: str = "no model") -> InitFailure:
    return InitFailure("node", "process003", Failure(category, message, "Traceback"))


@pytest.mark.parametrize(
    "message, says",
    [("no model", "call init()"), ("ModuleNotFoundError: No module named 'x' (in the Python /p)", "conda_file: FILE")],
)
def test_an_init_that_fails_is_told_with_what_to_do(message: str, says: str) -> None:
    watch = InitWatch(spec(), 0.0)
    told = [watch.failed(init_failure(message=message), 1, 1.0) for _ in range(3)][-1]
    assert told is not None
    assert says in told.hint


@given(slots=st.integers(1, 20))
@settings(deadline=None, max_examples=20)
def test_init_that_raises_twice_on_every_slot_and_once_more_is_hopeless(slots: int) -> None:
    watch = InitWatch(spec(), 0.0)
    assert all(watch.failed(init_failure(), slots, 1.0) is None for _ in range(2 * slots))
    failure = watch.failed(init_failure(), slots, 1.0)
    assert failure is not None
    assert failure.code == "INIT_FAILED"
    assert "no model" in failure.first_cause
    assert failure.log.endswith("node/process003.txt")


def test_workers_that_die_in_init_have_more_patience_given() -> None:
    watch = InitWatch(spec(lost_leases=10), 0.0)
    assert all(watch.failed(init_failure("INIT_DIED"), 1, 1.0) is None for _ in range(10))
    failure = watch.failed(init_failure("INIT_DIED"), 1, 1.0)
    assert failure is not None
    assert "11 times" in failure.summary


def test_a_mini_batch_that_runs_proves_that_init_can_work() -> None:
    watch = InitWatch(spec(), 0.0)
    for _ in range(50):
        assert watch.failed(init_failure(), 1, 1.0) is None
        watch.ran()


def test_after_two_minutes_too_many_failures_count_though_some_workers_got_through() -> None:
    watch = InitWatch(spec(), 0.0)
    for number in range(5):
        watch.ran()
        assert watch.failed(init_failure(), 2, 110.0 + number) is None
    failure = watch.failed(init_failure(), 2, 121.0)
    assert failure is not None
    assert (failure.code, failure.error_category) == ("INIT_FAILED", "INIT_EXCEPTION")
    early = InitWatch(spec(), 0.0)
    early.ran()
    assert early.failed(init_failure(), 2, 1000.0) is None


def test_that_all_hang_in_init_is_no_progress_unless_something_ran() -> None:
    failure = InitWatch(spec(), 0.0).failed(init_failure("INIT_TIMEOUT"), 8, 1.0)
    assert failure is not None
    assert failure.code == "NO_PROGRESS"
    assert "process003.stderr.txt" in failure.log
    watch = InitWatch(spec(), 0.0)
    watch.ran()
    assert watch.failed(init_failure("INIT_TIMEOUT"), 8, 1.0) is None


# Standing still


def test_before_the_first_mini_batch_the_first_timeout_counts() -> None:
    watch = StallWatch(spec(first_task_creation_timeout=10, progress_update_timeout=100), 0.0)
    assert watch.stalled(10.0, nodes=1, running=0) is None
    failure = watch.stalled(10.1, nodes=1, running=0)
    assert failure is not None
    assert (failure.code, "first_task_creation_timeout" in failure.summary) == ("NO_PROGRESS", True)


def test_after_the_first_mini_batch_the_other_timeout_counts_from_the_last_move() -> None:
    watch = StallWatch(spec(first_task_creation_timeout=10, progress_update_timeout=100), 0.0)
    watch.first_mini_batch()
    watch.moved(50.0)
    assert watch.stalled(150.0, nodes=1, running=1) is None
    failure = watch.stalled(150.1, nodes=1, running=1)
    assert failure is not None
    assert "progress_update_timeout" in failure.summary
    watch.moved(151.0)
    assert watch.stalled(200.0, nodes=1, running=1) is None


def test_by_default_every_try_of_a_mini_batch_has_its_time() -> None:
    settings_ = spec(run_invocation_timeout=1000, run_max_try=5)
    watch = StallWatch(settings_, 0.0)
    watch.first_mini_batch()
    assert watch.stalled(1000 * 5, nodes=1, running=1) is None


@pytest.mark.parametrize("nodes, wanted, words", [
    (0, None, "no node is alive"), (2, 3, "have 2 of 3 nodes"), (3, 3, "3 nodes are alive, 4 mini-batches"),
    (1, None, "1 nodes are alive"),
])  # fmt: skip
def test_the_failure_says_what_the_job_waits_for(nodes: int, wanted: int | None, words: str) -> None:
    watch = StallWatch(spec(instance_count=wanted, first_task_creation_timeout=1), 0.0)
    failure = watch.stalled(2.0, nodes=nodes, running=4)
    assert failure is not None
    assert words in failure.summary


def test_ranges_without_a_record_are_no_part_of_the_percentage() -> None:
    job = spec(allowed_failed_percent=10)
    assert over_threshold(job, progress(done=99, failed=1, empty=80), Errors()) is None
    assert over_threshold(job, progress(done=97, failed=3, empty=80), Errors()) is not None
