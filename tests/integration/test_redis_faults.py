"""Redis that dies, forgets its last moments, is full or may not write: all roles wait for it, and no row is harmed."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.wire.states import JobState
from tests.chaos.oracle import ENTRY_SCRIPT, examine
from tests.cluster import AOF, Cluster
from tests.redis_server import RedisServer

pytestmark = pytest.mark.integration

BACK_WITHIN_S = 5
ALONE_S = 2.0
"""For how long nodes wait for a Redis that doesn't answer; for one that can't write they wait for ever."""


def submit(cluster: Cluster, mini_batches: int) -> str:
    marks = cluster.home / "marks"
    marks.mkdir(exist_ok=True)
    return cluster.submit(
        ENTRY_SCRIPT,
        inputs=cluster.files(mini_batches),
        mini_batch_size=1,
        environment_variables={"MARKS": str(marks)},
    )


def decided(cluster: Cluster, job: str) -> int:
    return sum(1 for _ in read_decisions(cluster.folder(job).path))


def until_decided(cluster: Cluster, job: str, count: int, timeout_s: float = 30) -> None:
    cluster.until(lambda: decided(cluster, job) >= count, f"{count} are decided", timeout_s)


def check(cluster: Cluster, job: str) -> None:
    result = cluster.result(job, timeout_s=60)
    assert result.state is JobState.COMPLETED, result.failure
    finding = examine(cluster.folder(job), result)
    assert finding.is_clean, finding


def check_nothing_was_charged(cluster: Cluster, job: str) -> None:
    """Nothing ran twice on anybody's account."""
    result = cluster.result(job)
    assert (result.progress.lost, result.progress.retried) == (0, 0)
    assert {outcome.tries for outcome in read_decisions(cluster.folder(job).path)} == {1}


def check_nobody_died(cluster: Cluster) -> None:
    assert {name: process.poll() for name, process in cluster.processes.items()} == dict.fromkeys(cluster.processes)


@pytest.mark.parametrize("fsync", ["everysec", "always"])
def test_redis_that_is_killed_again_and_again_costs_nothing(fsync: str) -> None:
    with Cluster(nodes=2, slots=2, redis_options=("--appendfsync", fsync)) as cluster:
        job = submit(cluster, 2000)
        for _ in range(4):
            until_decided(cluster, job, decided(cluster, job) + 100, BACK_WITHIN_S + 5 * (not decided(cluster, job)))
            cluster.redis_server.kill()
            cluster.redis_server.start()
        before = decided(cluster, job)
        assert before < 2000, "the job was over before Redis was killed the last time"
        until_decided(cluster, job, before + 1, BACK_WITHIN_S)
        other = submit(cluster, 10)
        cluster.until(
            lambda: cluster.registry.state(other) is not JobState.QUEUED, "masters take jobs again", BACK_WITHIN_S
        )
        for each in (job, other):
            check(cluster, each)
            check_nothing_was_charged(cluster, each)
        check_nobody_died(cluster)


def test_connections_that_are_cut_cost_nothing() -> None:
    with Cluster(nodes=2, slots=2) as cluster:
        job = submit(cluster, 1500)
        for _ in range(8):
            until_decided(cluster, job, decided(cluster, job) + 50)
            # All may be about to connect again.
            cluster.until(lambda: cluster.redis.client_kill_filter(_type="normal") > 0, "a connection is cut", 30)
        assert decided(cluster, job) < 1500
        check(cluster, job)
        check_nothing_was_charged(cluster, job)
        check_nobody_died(cluster)


def cut_tail(cluster: Cluster, length: int) -> None:
    """Kill Redis, and let it start again with only so much of its log, as after a power cut."""
    cluster.redis_server.kill()
    (log,) = cluster.redis_server.folder.glob("appendonlydir/*.incr.aof")
    os.truncate(log, max(0, length if length >= 0 else log.stat().st_size + length))
    cluster.redis_server.start()


@pytest.mark.parametrize("seed", [1, 2])
def test_redis_that_lost_its_last_moments_costs_no_row(seed: int) -> None:
    chance = random.Random(seed)
    with Cluster(nodes=2, slots=2, leader_s=1, lease_s=2) as cluster:
        job = submit(cluster, 2000)
        for _ in range(3):
            until_decided(cluster, job, decided(cluster, job) + 150)
            cut_tail(cluster, -chance.randint(1 << 10, 60 << 10))
        assert decided(cluster, job) < 2000
        check(cluster, job)
        check_nobody_died(cluster)


def test_redis_that_forgot_that_the_job_was_finalizing_costs_no_row() -> None:
    with Cluster(nodes=1, slots=2, leader_s=1, lease_s=2) as cluster:
        cluster.kill("concatenator")
        job = submit(cluster, 400)
        until_decided(cluster, job, 200)
        (log,) = cluster.redis_server.folder.glob("appendonlydir/*.incr.aof")
        length = log.stat().st_size
        cluster.until(lambda: cluster.registry.state(job) is JobState.FINALIZING, "all is decided")
        cut_tail(cluster, length)
        assert cluster.registry.state(job) is JobState.PROCESSING
        cluster.start("concatenator")
        check(cluster, job)
        cluster.until(lambda: job not in cluster.registry.active_jobs(), "the job is retired")
        assert cluster.registry.state(job) is JobState.COMPLETED
        cluster.until(lambda: cluster.known_nodes.all()[0][0].jobs == [], "the agent has let go of the job")


# A server that is there, and can't write


def full_memory(cluster: Cluster) -> Callable[[], object]:
    cluster.redis.config_set("maxmemory", "1")
    return lambda: cluster.redis.config_set("maxmemory", "0")


def no_replicas(cluster: Cluster) -> Callable[[], object]:
    cluster.redis.config_set("min-replicas-to-write", "1")
    return lambda: cluster.redis.config_set("min-replicas-to-write", "0")


def read_only(cluster: Cluster) -> Callable[[], object]:
    cluster.redis.slaveof("127.0.0.1", 1)
    return cluster.redis.slaveof


def full_disk(cluster: Cluster) -> Callable[[], object]:
    filler = cluster.redis_server.folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096):
                pass
        except OSError:
            pass
    return filler.unlink


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A disk of 4 MB as this folder."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a small disk")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk can't be mounted here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def outage_cluster() -> Cluster:
    flags = ("--alone-seconds", str(ALONE_S))
    return Cluster(nodes=1, slots=2, lease_s=1, leader_s=1, api=True, agent_flags=flags)


def outage(cluster: Cluster, begin: Callable[[Cluster], Callable[[], object]]) -> None:
    """A job meets an outage that outlasts every lease; what is submitted is accepted, or told to come again."""
    with cluster:
        job = submit(cluster, 1200)
        until_decided(cluster, job, 100)
        end = begin(cluster)
        began = time.monotonic()
        cluster.until(lambda: cluster.logged("node000", "lease_expired") > 0, "the agent gives its lease up")
        assert cluster.logged("node000", "redis_away") > 0
        assert cluster.logged("master", "redis_away") > 0
        code = cluster.code("def run(mini_batch):\n    return mini_batch\n")
        spec = {"code": str(code), "entry_script": "entry.py", "inputs": str(cluster.files(10))}
        # The folder alone makes a job: what is accepted there is registered when Redis can write again.
        headers = {"Idempotency-Key": "one"}
        early = httpx.post(f"{cluster.api_url}/v1/jobs", json=spec, headers=headers, timeout=10)
        assert early.status_code == 202 or int(early.headers["Retry-After"]) > 0, early.text
        cluster.until(lambda: time.monotonic() > began + 2 * ALONE_S, "the leader's lease has run out as well")
        before = decided(cluster, job)
        assert before < 1200
        end()
        until_decided(cluster, job, before + 1, BACK_WITHIN_S)
        check(cluster, job)
        assert cluster.result(job).progress.retried == 0
        answer = httpx.post(f"{cluster.api_url}/v1/jobs", json=spec, headers=headers, timeout=10)
        assert answer.status_code == 202, answer.text
        assert early.status_code == 503 or early.json()["id"] == answer.json()["id"]
        assert cluster.result(answer.json()["id"]).state is JobState.COMPLETED
        check_nobody_died(cluster)


@pytest.mark.parametrize("begin", [full_memory, no_replicas, read_only])
def test_redis_that_cannot_write_is_waited_for(begin: Callable[[Cluster], Callable[[], object]]) -> None:
    outage(outage_cluster(), begin)


def test_redis_whose_disk_is_full_is_waited_for() -> None:
    cluster = outage_cluster()
    with small_disk(cluster.redis_server.folder):
        outage(cluster, full_disk)


# A server that jobs can't be trusted to

SERVICES = {
    "master": ["parallelrun_master.main"],
    "agent": ["parallelrun_agent.main", "--node", "n", "--slots", "1"],
    "concatenator": ["parallelrun_concatenator.main"],
}


def exit_of(service: str, url: str, home: Path, *flags: str) -> tuple[int, str]:
    command = [sys.executable, "-m", *SERVICES[service], "--redis-url", url, "--root", str(home), *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("service", SERVICES)
def test_no_service_starts_on_a_redis_that_evicts_or_forgets_or_does_not_say(service: str, tmp_path: Path) -> None:
    with RedisServer(*AOF[:4], "--maxmemory-policy", "allkeys-lru") as server:
        code, log = exit_of(service, server.url, tmp_path, "--allow-volatile-redis")
        assert (code, "allkeys-lru" in log, "redis_unfit" in log) == (3, True, True), log
    with RedisServer("--appendonly", "no") as server:
        code, log = exit_of(service, server.url, tmp_path)
        assert (code, "append-only file is off" in log) == (3, True), log
    with RedisServer(*AOF[:4]) as server:
        code, log = exit_of(service, server.url_without_info(), tmp_path)
        assert (code, "INFO is not permitted" in log, ":pw@" in log) == (3, True, False), log


def test_a_redis_that_forgets_can_be_allowed(tmp_path: Path) -> None:
    with RedisServer("--appendonly", "no") as server:
        command = [sys.executable, "-m", *SERVICES["concatenator"], "--redis-url", server.url, "--root", str(tmp_path)]
        with subprocess.Popen([*command, "--allow-volatile-redis"], stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert any('"started"' in line for line in process.stderr), "it ended without having started"
            process.terminate()
            process.communicate(timeout=20)
        assert process.returncode == 0
