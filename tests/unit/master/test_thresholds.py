"""When a job must fail for what has failed in it: more than a threshold, never at it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.outcome import Failure
from parallelrun_core.wire.progress import Progress
from parallelrun_master.policy.error_groups import ErrorGroups, with_cause
from parallelrun_master.policy.thresholds import nothing_returned, over_threshold
from tests.unit.core.factories import failed


def spec(**fields: Any) -> JobSpec:
    return JobSpec.parse({"entry_script": "a.py", "inputs": "/x", **fields})


def progress(**fields: Any) -> Progress:
    return Progress(**{"scheduled": 100, "listing_done": True, **fields})


@pytest.mark.parametrize("threshold, items_failed, fails", [
    (-1, 10**9, False), (0, 0, False), (0, 1, True), (5, 5, False), (5, 6, True),
])  # fmt: skip
def test_more_items_than_the_threshold_fail_the_job(threshold: int, items_failed: int, fails: bool) -> None:
    failure = over_threshold(spec(error_threshold=threshold), progress(items_failed=items_failed), ErrorGroups())
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
    failure = over_threshold(settings_, progress(failed=count, listing_done=listing_done), ErrorGroups())
    assert (failure is not None) == fails


@pytest.mark.parametrize("percent, count, fails", [
    (100, 100, False), (10, 10, False), (10, 11, True), (0, 0, False), (0, 1, True), (33.3, 33, False),
    (33.3, 34, True), (99.9, 100, True),
])  # fmt: skip
def test_a_greater_percentage_than_allowed_fails_the_job_once_all_is_scheduled(
    percent: float, count: int, fails: bool
) -> None:
    settings_ = spec(allowed_failed_percent=percent)
    assert (over_threshold(settings_, progress(failed=count), ErrorGroups()) is not None) == fails
    assert over_threshold(settings_, progress(failed=count, listing_done=False), ErrorGroups()) is None


def test_an_empty_job_is_not_over_any_percentage() -> None:
    assert over_threshold(spec(allowed_failed_percent=0), progress(scheduled=0), ErrorGroups()) is None


def test_the_verdict_names_the_first_cause() -> None:
    errors = ErrorGroups()
    errors.add(failed(7, message="ValueError: bad file"))
    errors.add(failed(8, message="KeyError: 'x'"))
    failure = over_threshold(spec(mini_batch_error_threshold=0), progress(failed=2), errors)
    assert failure is not None
    assert failure.first_cause == "RUN_EXCEPTION: ValueError: bad file"
    assert failure.sample_mini_batches == [7]
    assert failure.traceback == "Traceback"
    assert nothing_returned(spec(), progress(failed=2), errors).first_cause == failure.first_cause
    assert with_cause(failure, ErrorGroups()) == failure


def test_a_job_without_a_row_is_told_whether_run_failed_or_returned_nothing() -> None:
    silent = nothing_returned(spec(), progress(scheduled=3, failed=0), ErrorGroups())
    assert (silent.code, "returned no row" in silent.summary, bool(silent.hint)) == ("NO_ROWS", True, True)
    broken = nothing_returned(spec(), progress(scheduled=3, failed=3), ErrorGroups())
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
    errors, counts = ErrorGroups(), progress(scheduled=3, failed=3, items_failed=items_failed)
    errors.add(failed(0, message=message))
    crossed = over_threshold(spec(mini_batch_error_threshold=0), counts, errors)
    assert crossed is not None
    for failure in (crossed, nothing_returned(spec(), counts, errors)):
        assert says in failure.hint
        assert bool(failure.hint) == bool(says)
    slow = ErrorGroups()
    slow.add(msgspec.structs.replace(failed(0), failure=Failure("RUN_TIMEOUT", "run() took longer")))
    late = over_threshold(spec(mini_batch_error_threshold=0), counts, slow)
    assert late is not None
    assert "more time (run_invocation_timeout;" in late.hint
    apart = over_threshold(spec(mini_batch_error_threshold=0, on_failure="isolate"), counts, errors)
    assert apart is not None
    assert "mini_batch_size" not in apart.hint  # its items were run apart: others have not failed with one


@pytest.mark.parametrize("shared, says", [(None, ""), (1, ""), (4, "4 workers share a GPU: lower workers_per_gpu")])
def test_a_gpu_whose_memory_runs_out_is_told_with_what_to_do(shared: int | None, says: str) -> None:
    errors, counts = ErrorGroups(), progress(scheduled=3, failed=3, items_failed=3)
    for size in ("20 GiB", "30 GiB"):
        failure = Failure("GPU_OUT_OF_MEMORY", f"OutOfMemoryError: CUDA out of memory. Tried to allocate {size}.")
        errors.add(msgspec.structs.replace(failed(0), failure=failure))
    crossed = over_threshold(spec(mini_batch_error_threshold=0, workers_per_gpu=shared), counts, errors)
    assert crossed is not None
    assert "smaller mini-batches (mini_batch_size)" in crossed.hint
    assert ("share" in crossed.hint, says in crossed.hint) == (bool(says), True)
    assert len(errors.most_common(9)) == 1, "the message says how much was wanted, which differs"


LIST = "AttributeError: 'list' object has no attribute 'iterrows'"


@pytest.mark.parametrize("message, file, given, says", [
    (LIST, "/data/a.csv", {}, "`transformations: [read_delimited]`"),
    (LIST, "/data/a.parquet", {}, "`transformations: [read_parquet]`"),
    (LIST, "/data/a.avro", {}, "`transformations: [read_avro]`"),
    ("TypeError: list indices must be integers or slices, not str", "/data/a.JSONL", {}, "[read_json_lines]"),
    ("TypeError: string indices must be integers, not 'str'", "/data/a.csv", {}, "[read_delimited]"),
    (LIST, "/data/a.png", {}, ""),
    ("AttributeError: 'list' object has no attribute 'strip'", "/data/a.csv", {}, ""),
    (LIST, "/data/a.csv", {"transformations": ["read_delimited"]}, ""),
    (LIST, "/data/a.csv", {"type": "mltable"}, ""),
])  # fmt: skip
def test_a_run_that_expects_a_table_is_told_how_to_get_one(
    message: str, file: str, given: dict[str, Any], says: str
) -> None:
    errors, counts = ErrorGroups(), progress(scheduled=3, failed=3, items_failed=3)
    detail = json.dumps({"items": 1, "files": [file]})
    errors.add(msgspec.structs.replace(failed(0, message=message), detail=detail))
    job = spec(mini_batch_error_threshold=0, inputs={"data": {"path": "/data", **given}})
    crossed = over_threshold(job, counts, errors)
    assert crossed is not None
    assert says in crossed.hint
    assert bool(crossed.hint) == bool(says)


def test_items_that_are_missing_without_an_error_are_explained() -> None:
    counts = progress(items_failed=11_940, items_short=11_940, items_done=40, rows=40)
    failure = over_threshold(spec(error_threshold=10), counts, ErrorGroups())
    assert failure is not None
    assert failure.summary == (
        "error_threshold 10: run() returned 40 rows for 11,980 items, which Azure counts as failed; "
        "set -1 for a job that aggregates."
    )
    assert "returned fewer rows" in failure.hint


def test_a_threshold_that_both_kinds_cross_together_names_both() -> None:
    counts = progress(items_failed=6, items_short=3, items_done=4, rows=4)
    failure = over_threshold(spec(error_threshold=5), counts, ErrorGroups())
    assert failure is not None
    assert failure.summary == (
        "error_threshold 5: 3 items failed, and run() returned 4 rows for 7 items, which Azure counts as failed; "
        "set -1 for a job that aggregates."
    )


def test_ranges_without_a_record_are_no_part_of_the_percentage() -> None:
    job = spec(allowed_failed_percent=10)
    assert over_threshold(job, progress(done=99, failed=1, empty=80), ErrorGroups()) is None
    failure = over_threshold(job, progress(done=97, failed=3, empty=80), ErrorGroups())
    assert failure is not None
    assert failure.summary == "15 % of the mini-batches failed, more than allowed_failed_percent (10)."


def test_ranges_without_a_record_are_not_what_run_is_blamed_for() -> None:
    failure = nothing_returned(spec(), progress(scheduled=3, done=3, empty=3), ErrorGroups())
    assert (failure.code, failure.summary) == (
        "EMPTY_INPUT", "There is nothing to process in /x: no file, or no row.",
    )  # fmt: skip
    table = {"x": {"path": "/x", "transformations": [{"read_delimited": {"file_extension": ".csv"}}, {"take": 1}]}}
    failure = nothing_returned(spec(inputs=table), progress(scheduled=3, done=3, empty=3), ErrorGroups())
    assert failure.summary == "There is nothing to process in /x: no file .csv, or no row."
    failure = nothing_returned(spec(), progress(scheduled=10, done=3, empty=3, failed=7), ErrorGroups())
    assert "all mini-batches failed (7)" in failure.summary
    failure = nothing_returned(spec(), progress(scheduled=10, done=4, empty=3, failed=6), ErrorGroups())
    assert "returned no row" in failure.summary
