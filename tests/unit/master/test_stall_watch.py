"""When nothing moves."""

from __future__ import annotations

from typing import Any

import pytest

from parallelrun_core.spec import JobSpec
from parallelrun_master.policy.stall_watch import StallWatch


def spec(**fields: Any) -> JobSpec:
    return JobSpec.parse({"entry_script": "a.py", "inputs": "/x", **fields})


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


@pytest.mark.parametrize("limits", [
    {"run_invocation_timeout": 1000, "run_max_try": 5}, {"task_overhead_timeout": 7200, "run_max_try": 1},
])  # fmt: skip
def test_by_default_every_try_of_a_mini_batch_has_its_time(limits: dict[str, int]) -> None:
    settings_ = spec(**limits)
    watch = StallWatch(settings_, 0.0)
    watch.first_mini_batch()
    one_try_s = settings_.run_invocation_timeout + settings_.task_overhead_timeout
    assert watch.stalled(one_try_s * settings_.run_max_try, nodes=1, running=1) is None


@pytest.mark.parametrize("nodes, wanted, words", [
    (0, None, "no node is alive"), (2, 3, "have 2 of 3 nodes"), (3, 3, "3 nodes are alive, 4 mini-batches"),
    (1, None, "1 nodes are alive"),
])  # fmt: skip
def test_the_failure_says_what_the_job_waits_for(nodes: int, wanted: int | None, words: str) -> None:
    watch = StallWatch(spec(instance_count=wanted, first_task_creation_timeout=1), 0.0)
    failure = watch.stalled(2.0, nodes=nodes, running=4)
    assert failure is not None
    assert words in failure.summary


def test_a_job_without_nodes_says_which_compute_has_none() -> None:
    failure = StallWatch(spec(compute="cpus", first_task_creation_timeout=1), 0.0).stalled(2.0, nodes=0, running=0)
    assert failure is not None
    assert "no node of compute 'cpus' is alive" in failure.summary
    assert "parallelrun compute show cpus" in failure.hint
