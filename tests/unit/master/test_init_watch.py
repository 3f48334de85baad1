"""When init() gets nowhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.outcome import ErrorCategory, Failure, InitFailure
from parallelrun_master.policy.init_watch import InitWatch


def spec(**fields: Any) -> JobSpec:
    return JobSpec.parse({"entry_script": "a.py", "inputs": "/x", **fields})


def init_failure(category: ErrorCategory = "INIT_EXCEPTION", message: str = "no model") -> InitFailure:
    return InitFailure("node", "process003", Failure(category, message, "Traceback"))


ABSENT = "FileNotFoundError: [Errno 2] No such file or directory: "


@pytest.mark.parametrize("relative, says", [(False, "call init()"), (True, "Path(__file__).parent")])
def test_an_init_that_fails_is_told_with_what_to_do(relative: bool, says: str) -> None:
    names = ("config.json", "../models/a: b.pt") if relative else ("/data/a.pt", "s3://bucket/a.pt")
    other = ("ModuleNotFoundError: No module named 'x' (in the Python /p)", "conda_file: FILE")
    for message, words in [(f"{ABSENT}{name!r}", says) for name in names] + [other]:
        watch = InitWatch(spec(), 0.0)
        told = [watch.failed(init_failure(message=message), 1, 1.0) for _ in range(3)][-1]
        assert told is not None
        assert words in told.hint


def test_an_init_that_finds_a_gpu_too_small_counts_as_one_that_raises() -> None:
    watch = InitWatch(spec(workers_per_gpu=2), 0.0)
    told = [watch.failed(init_failure("GPU_OUT_OF_MEMORY", "CUDA out of memory"), 1, 1.0) for _ in range(3)][-1]
    assert told is not None
    assert (told.code, told.error_category) == ("INIT_FAILED", "GPU_OUT_OF_MEMORY")
    assert "lower workers_per_gpu" in told.hint


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


def test_an_input_that_can_not_be_read_fails_the_job_at_once() -> None:
    failure = InitWatch(spec(), 0.0, has_run=True).failed(init_failure("INPUT_UNREADABLE", "s3://b/modl: gone"), 8, 1.0)
    assert failure is not None
    assert (failure.code, failure.first_cause) == ("INPUT_UNREADABLE", "node: s3://b/modl: gone")


def test_nodes_that_lack_an_input_are_waited_for_while_another_one_gets_it_or_works() -> None:
    watch = InitWatch(spec(), 0.0)
    for _ in range(20):
        assert watch.failed(init_failure("LOAD_TIMEOUT", "no room"), 1, 1.0) is None
        assert watch.failed(init_failure("LOAD_TIMEOUT", "no room"), 1, 1.0) is None
        watch.prepares()
    assert watch.failed(init_failure("LOAD_TIMEOUT"), 1, 1.0) is None
    assert watch.failed(init_failure("LOAD_TIMEOUT"), 1, 1.0) is None
    failure = watch.failed(init_failure("LOAD_TIMEOUT", "no room"), 1, 1.0)
    assert failure is not None
    assert (failure.code, "no room" in failure.first_cause) == ("INPUT_UNREADABLE", True)
