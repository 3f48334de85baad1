"""Nodes that can't be reached, are paused, leave or have a wrong clock: what they held goes on elsewhere, once."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.store.keys import NODES_ALIVE, JobKeys
from parallelrun_core.wire.states import JobState
from tests.chaos.oracle import ENTRY_SCRIPT, Finding, examine
from tests.cluster import Cluster
from tests.proxy import Mode, Proxy

pytestmark = pytest.mark.integration

LEASE_S = 5.0  # from here on, the margin by which workers end before it is one second
CUT_OFF, HEALTHY = "node000", "node001"
SLOW_SCRIPT = ENTRY_SCRIPT.replace("0.001, 0.010", "0.020, 0.040")


def submit(cluster: Cluster, mini_batches: int, script: str = SLOW_SCRIPT) -> str:
    marks = cluster.home / "marks"
    marks.mkdir(exist_ok=True)
    return cluster.submit(
        script,
        inputs=cluster.files(mini_batches),
        mini_batch_size=1,
        environment_variables={"MARKS": str(marks)},
    )


def decisions(cluster: Cluster, job: str, node: str = "") -> int:
    return sum(node in ("", outcome.node) for outcome in read_decisions(cluster.folder(job).path))


def session_end(cluster: Cluster, job: str, node: str) -> float:
    """When the lease of a node's session ends, by Redis' clock, which is that of this machine; 0 without one."""
    sessions: Any = cluster.redis.zrange(JobKeys(job).sessions, 0, -1, withscores=True)
    return max((score / 1000 for raw, score in sessions if raw.startswith(f"{node}-".encode())), default=0.0)


def find(cluster: Cluster, job: str) -> Finding:
    result = cluster.result(job, timeout_s=60)
    assert result.state is JobState.COMPLETED, result.failure
    return examine(cluster.folder(job), result)


def check(cluster: Cluster, job: str) -> None:
    finding = find(cluster, job)
    assert finding.is_clean, finding


@contextmanager
def behind_a_proxy(
    *services: str, nodes: int = 2, without: str = "", leader_s: float = 5, lease_s: float = LEASE_S
) -> Iterator[tuple[Cluster, Proxy]]:
    """A cluster in which the messages of these services to Redis go through a proxy."""
    cluster = Cluster(nodes=nodes, slots=2, lease_s=lease_s, leader_s=leader_s, without=without)
    with Proxy(cluster.redis_server.url) as proxy:
        for name in services:
            cluster.environments[name] = {"PARALLELRUN_REDIS_URL": proxy.url}
        with cluster:
            yield cluster, proxy


def both_at_work(cluster: Cluster, job: str) -> None:
    cluster.until(
        lambda: all(decisions(cluster, job, node) > 10 for node in cluster.nodes), "all nodes have decided some"
    )


def seconds_too_long(cluster: Cluster, proxy: Proxy, job: str, mode: Mode) -> float:
    """Cut a node off; for how long its workers outlived its lease, negative when they didn't."""
    proxy.set(mode)
    latest = 0.0

    def gone() -> bool:
        nonlocal latest
        latest = max(latest, session_end(cluster, job, CUT_OFF))
        return not cluster.workers(CUT_OFF) or (latest > 0 and time.time() > latest + 1)

    cluster.until(gone, "its workers are gone, or should be", timeout_s=4 * LEASE_S)
    assert latest > 0
    return time.time() - latest


@pytest.mark.parametrize("mode", ["blackhole", "reset", "one-way", "half-open"])
def test_a_node_that_is_cut_off_ends_its_workers_before_others_may_go_on(mode: Mode) -> None:
    with behind_a_proxy(CUT_OFF) as (cluster, proxy):
        job = submit(cluster, 700)
        both_at_work(cluster, job)
        assert seconds_too_long(cluster, proxy, job, mode) < 0
        assert cluster.logged(CUT_OFF, "lease_expired") == 1
        cluster.until(lambda: cluster.logged("master", "sessions_lost") > 0, "what it held goes back")
        before = decisions(cluster, job, CUT_OFF)
        on_others = decisions(cluster, job, HEALTHY)
        cluster.until(lambda: decisions(cluster, job, HEALTHY) > on_others + 20, "the other node goes on")
        assert decisions(cluster, job) < 700
        proxy.set("pass")
        cluster.until(lambda: decisions(cluster, job, CUT_OFF) > before, "it works again by itself", LEASE_S + 5)
        check(cluster, job)
        assert cluster.result(job).progress.retried == 0


def test_without_the_local_deadline_workers_that_outlive_their_lease_are_found() -> None:
    with behind_a_proxy(CUT_OFF, without="lease.deadline") as (cluster, proxy):
        job = submit(cluster, 700)
        both_at_work(cluster, job)
        assert seconds_too_long(cluster, proxy, job, "blackhole") > 0
        proxy.set("pass")
        check(cluster, job)  # the fence still keeps what they did from being counted


def test_a_node_with_a_slow_network_works_and_harms_nobody() -> None:
    with behind_a_proxy(CUT_OFF, lease_s=20) as (cluster, proxy):
        job = submit(cluster, 800)
        both_at_work(cluster, job)
        proxy.set("delay")
        before = decisions(cluster, job, CUT_OFF)
        cluster.until(lambda: decisions(cluster, job, CUT_OFF) > before + 3, "the slow node works")
        proxy.set("pass")
        check(cluster, job)
        assert cluster.result(job).progress.lost == 0


def test_a_leader_that_is_cut_off_is_replaced_in_time() -> None:
    leader_s = 4.0
    with behind_a_proxy("master", nodes=1, leader_s=leader_s) as (cluster, proxy):
        job = submit(cluster, 500)
        cluster.until(lambda: decisions(cluster, job) > 10, "some are decided")
        cluster.add("master001", "parallelrun_master.main", "--leaders", "2")
        cluster.until(lambda: cluster.logged("master001", "started") > 0, "there is another master")
        assert cluster.registry.status(job).term == 1
        proxy.set("blackhole")
        began = time.monotonic()
        cluster.until(lambda: cluster.registry.status(job).term == 2, "another leads", 4 * leader_s)
        assert time.monotonic() - began < 2 * leader_s
        before = decisions(cluster, job)
        cluster.until(lambda: decisions(cluster, job) > before + 10, "its successor decides")
        assert cluster.registry.state(job) is JobState.PROCESSING
        proxy.set("pass")
        cluster.until(lambda: cluster.logged("master", "fenced") > 0, "the first one sees that its term is over")
        check(cluster, job)


# A node that is paused for longer than its lease


def paused(cluster: Cluster) -> Finding:
    """A node that sleeps through the end of its lease, and what became of its late results."""
    job = submit(cluster, 400)
    both_at_work(cluster, job)
    agent = cluster.processes[CUT_OFF]
    agent.send_signal(signal.SIGSTOP)
    cluster.until(lambda: cluster.logged("master", "sessions_lost") > 0, "its lease has ended")
    before = decisions(cluster, job, HEALTHY)
    cluster.until(lambda: decisions(cluster, job, HEALTHY) > before + 20, "others have done what it held")
    assert decisions(cluster, job) < 400
    agent.send_signal(signal.SIGCONT)
    return find(cluster, job)


def test_late_results_of_a_paused_node_are_refused() -> None:
    with Cluster(nodes=2, slots=2, lease_s=1) as cluster:
        finding = paused(cluster)
        assert finding.is_clean, finding
        assert cluster.logged(CUT_OFF, "lease_expired") == 1


def test_without_the_fence_a_paused_node_doubles_rows() -> None:
    fenceless = Cluster(nodes=2, slots=2, lease_s=1, without="commit.fence")
    with (
        fenceless as cluster,
        pytest.raises(AssertionError, match="CONCATENATION_FAILED"),
    ):  # the table of segments finds it
        paused(cluster)


# A node that is told to stop


def test_a_node_that_is_told_to_stop_gives_its_work_back_at_once() -> None:
    with Cluster(nodes=2, slots=2, lease_s=60) as cluster:
        job = submit(cluster, 400)
        both_at_work(cluster, job)
        agent = cluster.processes[CUT_OFF]
        began = time.monotonic()
        agent.terminate()
        assert agent.wait(10) == 0
        assert time.monotonic() - began < 5
        assert [info.node for info, _ in cluster.known_nodes.all()] == [HEALTHY]
        assert session_end(cluster, job, CUT_OFF) == 0.0
        assert decisions(cluster, job) < 400
        check(cluster, job)
        result = cluster.result(job)
        assert (result.progress.lost, result.progress.retried) == (0, 0)
        assert {outcome.tries for outcome in read_decisions(cluster.folder(job).path)} == {1}


# Clocks


def libfaketime() -> Path:
    found = [path for folder in ("/usr/lib", "/usr/local/lib") for path in Path(folder).rglob("libfaketimeMT.so.1")]
    if not found:
        pytest.skip("libfaketime is not installed (apt-get install libfaketime)")
    return found[0]


@pytest.mark.parametrize("offset", ["-3600s", "+3600s"])
def test_a_node_whose_clock_is_an_hour_off_keeps_its_leases(offset: str) -> None:
    library = libfaketime()
    cluster = Cluster(nodes=2, slots=2, lease_s=1, leader_s=1)
    for name in (CUT_OFF, "master"):
        cluster.environments[name] = {
            "LD_PRELOAD": str(library), "FAKETIME": offset,
        }  # fmt: skip
    with cluster:
        job = submit(cluster, 300)
        check(cluster, job)
        result = cluster.result(job)
        assert (result.progress.lost, result.progress.retried) == (0, 0)
        assert decisions(cluster, job, CUT_OFF) > 10
        started = {node: _first_start(cluster, job, node) for node in (CUT_OFF, HEALTHY)}
        assert abs(started[CUT_OFF] - started[HEALTHY]) > 3000, "the clock was not off"


def _first_start(cluster: Cluster, job: str, node: str) -> float:
    return min(outcome.started for outcome in read_decisions(cluster.folder(job).path) if outcome.node == node)


def jump(cluster: Cluster, job: str, seconds: float) -> None:
    """What Redis' clock looks like to its leases when it is set back (or forward, when negative) by so much."""
    for key in (JobKeys(job).sessions, NODES_ALIVE):
        members: Any = cluster.redis.zrange(key, 0, -1, withscores=True)
        for raw, score in members:
            cluster.redis.zadd(key, {raw: score + 1000 * seconds}, xx=True)


def leadership_jumps(cluster: Cluster, job: str, seconds: float) -> None:
    """The same of the job's leader, who must be dead, or it would renew by the new clock."""
    cluster.redis.set(JobKeys(job).leader, "somebody", px=round(1000 * seconds))


def alive(cluster: Cluster) -> set[str]:
    return {node.node for node, is_alive in cluster.known_nodes.all() if is_alive}


def test_a_clock_of_redis_that_is_set_back_holds_up_nobody() -> None:
    with Cluster(nodes=2, slots=2, lease_s=1) as cluster:
        job = submit(cluster, 300)
        both_at_work(cluster, job)
        cluster.kill(CUT_OFF)
        leaders = cluster.leaders()
        cluster.kill("master")
        for leader in leaders:
            leader.kill()
        jump(cluster, job, 3600)
        leadership_jumps(cluster, job, 3600)
        cluster.start("master")
        cluster.until(lambda: cluster.logged("master", "sessions_lost") > 0, "what it held goes back", 10)
        cluster.until(lambda: alive(cluster) == {HEALTHY}, "the other node isn't alive any more")
        check(cluster, job)


def test_a_clock_of_redis_that_jumps_ahead_costs_no_row() -> None:
    with Cluster(nodes=2, slots=2, lease_s=60) as cluster:
        job = submit(cluster, 300)
        both_at_work(cluster, job)
        agent = cluster.processes[CUT_OFF]
        agent.send_signal(signal.SIGSTOP)  # or it would renew its lease by the new clock at once
        jump(cluster, job, -3600)
        cluster.until(lambda: cluster.logged("master", "sessions_lost") > 0, "the leases have run out")
        agent.send_signal(signal.SIGCONT)
        cluster.until(lambda: cluster.logged(CUT_OFF, "session_lost") > 0, "it learns of it")
        check(cluster, job)
        assert cluster.result(job).progress.retried == 0
