"""A job goes on by itself, whichever of the processes that look after it dies, and whatever Redis forgets."""

from __future__ import annotations

import os
import signal

import pytest

from parallelrun_core.states import JobState
from tests.chaos.oracle import ENTRY_SCRIPT, examine
from tests.cluster import Cluster

pytestmark = pytest.mark.integration


def submit(cluster: Cluster, mini_batches: int = 800) -> str:
    marks = cluster.home / "marks"
    marks.mkdir(exist_ok=True)
    return cluster.submit(
        ENTRY_SCRIPT,
        inputs=cluster.files(mini_batches * 4),
        mini_batch_size=4,
        environment_variables={"MARKS": str(marks)},
    )


def decided(cluster: Cluster, job: str) -> int:
    return cluster.registry.status(job).progress.decided


def check(cluster: Cluster, job: str) -> None:
    result = cluster.result(job, timeout_s=60)
    assert result.state is JobState.COMPLETED, result.failure
    finding = examine(cluster.folder(job), result)
    assert finding.is_clean, finding


def test_a_killed_leader_is_replaced() -> None:
    with Cluster(nodes=1, slots=2, leader_s=1) as cluster:
        job = submit(cluster)
        cluster.until(lambda: decided(cluster, job) > 50, "some are decided")
        for leader in cluster.leaders():
            leader.kill()
        check(cluster, job)
        assert cluster.registry.status(job).term >= 2


def test_a_killed_master_is_replaced_with_its_leaders() -> None:
    with Cluster(nodes=1, slots=2, leader_s=1) as cluster:
        job = submit(cluster)
        cluster.until(lambda: decided(cluster, job) > 50, "some are decided")
        cluster.kill("master")
        cluster.start("master")
        check(cluster, job)


def test_a_paused_leader_that_wakes_beside_its_successor_does_no_harm() -> None:
    with Cluster(nodes=1, slots=2, leader_s=1) as cluster:
        job = submit(cluster, mini_batches=1500)
        cluster.until(lambda: decided(cluster, job) > 50, "some are decided")
        (paused,) = cluster.leaders()
        paused.suspend()
        before = decided(cluster, job)
        cluster.until(lambda: decided(cluster, job) > before + 50, "its successor decides")
        paused.resume()
        check(cluster, job)
        assert cluster.logged("master", "fenced") >= 1


def test_a_master_that_is_told_to_stop_hands_over_at_once() -> None:
    with Cluster(nodes=1, slots=2, leader_s=300) as cluster:
        job = submit(cluster)
        cluster.until(lambda: decided(cluster, job) > 50, "some are decided")
        cluster.processes["master"].terminate()
        cluster.processes["master"].wait(20)
        cluster.start("master")
        check(cluster, job)


def test_a_killed_concatenator_is_replaced() -> None:
    with Cluster(nodes=1, slots=2) as cluster:
        cluster.kill("concatenator")
        job = submit(cluster, mini_batches=50)
        cluster.until(lambda: cluster.registry.state(job) is JobState.FINALIZING, "all is decided")
        cluster.start("concatenator")
        check(cluster, job)


def test_a_redis_that_forgets_everything_costs_no_row() -> None:
    with Cluster(nodes=1, slots=2, leader_s=1) as cluster:
        job = submit(cluster)
        cluster.until(lambda: decided(cluster, job) > 100, "some are decided")
        cluster.redis_server.kill()
        for path in cluster.redis_server.folder.rglob("*"):
            if path.is_file() and path.suffix != ".sock" and path.name != "log":
                path.unlink()
        cluster.redis_server.start()
        check(cluster, job)


def test_everything_killed_at_once_goes_on_when_it_is_started_again() -> None:
    with Cluster(nodes=2, slots=2, leader_s=1, lease_s=1) as cluster:
        job = submit(cluster)
        cluster.until(lambda: decided(cluster, job) > 50, "some are decided")
        for process in cluster.processes.values():
            os.kill(process.pid, signal.SIGKILL)
        cluster.redis_server.kill()
        cluster.redis_server.start()
        for name, process in list(cluster.processes.items()):
            process.wait()
            cluster.start(name)
        check(cluster, job)
