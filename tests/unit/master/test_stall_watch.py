"""When nothing moves."""

from __future__ import annotations

from typing import Any

import pytest

from parallelrun_core.spec import JobSpec
from parallelrun_master.policy.stall_watch import StallWatch, Workforce

IDLE, BUSY = Workforce(nodes=1, running=0), Workforce(nodes=1, running=1)


def spec(**fields: Any) -> JobSpec:
    return JobSpec.parse({"entry_script": "a.py", "inputs": "/x", **fields})


def watch(**fields: Any) -> StallWatch:
    """Of a job that has something to run from the first second on."""
    stall = StallWatch(spec(**fields), 0.0)
    stall.published(0.0)
    return stall


def test_until_a_mini_batch_is_run_the_first_timeout_counts_whatever_is_published() -> None:
    stall = watch(first_task_creation_timeout=10, progress_update_timeout=100)
    assert stall.stalled(6.0, IDLE) is None
    stall.published(7.0)
    stall.moved(9.0)
    assert stall.stalled(10.0, IDLE) is None
    failure = stall.stalled(10.1, IDLE)
    assert failure is not None
    assert (failure.code, failure.summary[:40]) == ("NO_PROGRESS", "No mini-batch has been run for 10 s (fir")


def test_while_there_is_nothing_to_run_yet_the_first_timeout_does_not_count() -> None:
    stall = StallWatch(spec(first_task_creation_timeout=10), 0.0)
    stall.moved(1000.0)
    assert stall.stalled(1009.0, IDLE) is None
    stall.published(1009.0)
    assert stall.stalled(1010.0, IDLE) is None
    assert stall.stalled(1011.0, IDLE) is not None


def test_the_first_timeout_stands_still_while_no_node_has_a_place() -> None:
    stall = watch(first_task_creation_timeout=10)
    assert stall.stalled(6.0, IDLE) is None
    for second in range(6, 1000):
        stall.stood_still(second)
        assert stall.stalled(second, IDLE) is None
    assert stall.stalled(1002.5, IDLE) is None
    assert stall.stalled(1003.5, IDLE) is not None, "what had passed before still counts"


@pytest.mark.parametrize("ends_by", [
    lambda stall: stall.stalled(5.0, BUSY), lambda stall: stall.has_run(),
])  # fmt: skip
def test_the_first_timeout_ends_with_the_run_of_a_mini_batch(ends_by: Any) -> None:
    stall = watch(first_task_creation_timeout=10, progress_update_timeout=100)
    ends_by(stall)
    assert stall.stalled(99.0, IDLE) is None
    failure = stall.stalled(106.0, IDLE)
    assert failure is not None
    assert "progress_update_timeout" in failure.summary


def test_a_job_that_has_run_under_an_earlier_leader_has_had_its_first_mini_batch() -> None:
    stall = StallWatch(spec(first_task_creation_timeout=10), 0.0, has_run=True)
    stall.published(0.0)
    assert stall.stalled(20.0, IDLE) is None


def test_after_the_first_mini_batch_the_other_timeout_counts_from_the_last_move() -> None:
    stall = watch(first_task_creation_timeout=10, progress_update_timeout=100)
    stall.has_run()
    stall.moved(50.0)
    assert stall.stalled(150.0, BUSY) is None
    failure = stall.stalled(150.1, BUSY)
    assert failure is not None
    assert "progress_update_timeout" in failure.summary
    stall.moved(151.0)
    assert stall.stalled(200.0, BUSY) is None


@pytest.mark.parametrize("limits", [
    {"run_invocation_timeout": 1000, "run_max_try": 5}, {"task_overhead_timeout": 7200, "run_max_try": 1},
])  # fmt: skip
def test_by_default_every_try_of_a_mini_batch_has_its_time(limits: dict[str, int]) -> None:
    settings_ = spec(**limits)
    stall = watch(**limits)
    stall.has_run()
    one_try_s = settings_.run_invocation_timeout + settings_.task_overhead_timeout
    assert stall.stalled(one_try_s * settings_.run_max_try, BUSY) is None


@pytest.mark.parametrize("force, has_run, wanted, words", [
    (Workforce(0, 0), False, None, "no node is alive"),
    (Workforce(2, 0), False, 3, "2 nodes are alive, and no worker has been started there"),
    (Workforce(1, 0, workers=4), False, None, "1 node is alive, and none of 4 workers has got through init()"),
    (Workforce(2, 4), True, 3, "have 2 of 3 nodes"),
    (Workforce(3, 4), True, 3, "3 nodes are alive, 4 mini-batches"),
])  # fmt: skip
def test_the_failure_says_what_the_job_waits_for(
    force: Workforce, has_run: bool, wanted: int | None, words: str
) -> None:
    stall = watch(instance_count=wanted, first_task_creation_timeout=1, progress_update_timeout=1)
    if has_run:
        stall.has_run()
    failure = stall.stalled(2.0, force)
    assert failure is not None
    assert words in failure.summary


def test_a_first_init_that_only_takes_long_has_a_setting() -> None:
    stall = watch(first_task_creation_timeout=1, progress_update_timeout=1)
    failure = stall.stalled(2.0, Workforce(1, 0, workers=4))
    assert failure is not None
    assert "raise first_task_creation_timeout" in failure.hint
    stall.has_run()
    failure = stall.stalled(4.0, Workforce(1, 0, workers=4))
    assert failure is not None
    assert "first_task_creation_timeout" not in failure.hint


def test_a_job_without_nodes_says_which_compute_has_none() -> None:
    failure = watch(compute="cpus", first_task_creation_timeout=1).stalled(2.0, Workforce(0, 0, 0, "no room"))
    assert failure is not None
    assert "no node of compute 'cpus' is alive (no room)" in failure.summary
    assert "parallelrun compute show cpus" in failure.hint
