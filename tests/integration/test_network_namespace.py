"""A real cut between a node and Redis: its own network namespace, whose wire is pulled. Only root may make one."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.integration.test_network_faults import (
    CUT_OFF,
    LEASE_S,
    both_at_work,
    check,
    decisions,
    session_end,
    submit,
)
from tests.proxy import Proxy

pytestmark = pytest.mark.integration

LONG_LEASE_S = 30.0
CUT_S = 4.5
"""Shorter than an agent waits for an answer, so that it can connect anew at once, and that comes before the kernel
sends again what it has sent 3 s after the cut."""


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


class Wire:
    """A namespace with one wire to ours."""

    def __init__(self) -> None:
        self.name = f"pr{os.getpid() % 10_000_000}"
        subnet = f"10.213.{os.getpid() % 250}"
        self.ours, self.theirs = f"{subnet}.1", f"{subnet}.2"
        ip("netns", "add", self.name)
        try:
            ip("link", "add", f"{self.name}a", "type", "veth", "peer", "name", f"{self.name}b", "netns", self.name)
            ip("addr", "add", f"{self.ours}/24", "dev", f"{self.name}a")
            ip("link", "set", f"{self.name}a", "up")
            for words in (
                ["addr", "add", f"{self.theirs}/24", "dev", f"{self.name}b"],
                ["link", "set", f"{self.name}b", "up"],
                ["link", "set", "lo", "up"],
            ):
                ip("-n", self.name, *words)
        except OSError:
            self.close()
            raise

    def cut(self) -> None:
        """No packet gets through any more, and nobody is told."""
        ip("link", "set", f"{self.name}a", "down")

    def mend(self) -> None:
        ip("link", "set", f"{self.name}a", "up")

    def lose_packets(self) -> None:
        """Nobody takes what leaves the namespace: its kernel sends it again, each time after twice as long."""
        ip("addr", "del", f"{self.ours}/24", "dev", f"{self.name}a")

    def take_packets(self) -> None:
        ip("addr", "add", f"{self.ours}/24", "dev", f"{self.name}a")

    def close(self) -> None:
        ip("netns", "del", self.name)


@pytest.fixture
def wire() -> Iterator[Wire]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("only root may make a network namespace, with iproute2")
    try:
        made = Wire()
    except OSError as error:
        pytest.skip(f"a network namespace can't be made here: {error}")
    yield made
    made.close()


def test_a_node_whose_wire_is_pulled_ends_its_workers_in_time_and_comes_back(wire: Wire) -> None:
    cluster = Cluster(nodes=2, slots=2, lease_s=LEASE_S)
    with Proxy(cluster.redis_server.url, host=wire.ours) as proxy:
        cluster.environments[CUT_OFF] = {"PARALLELRUN_REDIS_URL": proxy.url}
        cluster.prefixes[CUT_OFF] = ["ip", "netns", "exec", wire.name]
        with cluster:
            job = submit(cluster, 700)
            both_at_work(cluster, job)
            wire.cut()
            latest = 0.0

            def gone() -> bool:
                nonlocal latest
                latest = max(latest, session_end(cluster, job, CUT_OFF))
                return not cluster.workers(CUT_OFF) or (latest > 0 and time.time() > latest + 1)

            cluster.until(gone, "its workers are gone, or should be", 4 * LEASE_S)
            assert time.time() < latest
            cluster.until(lambda: cluster.logged("master", "sessions_lost") > 0, "what it held goes back")
            before = decisions(cluster, job, CUT_OFF)
            wire.mend()
            cluster.until(lambda: decisions(cluster, job, CUT_OFF) > before, "it works again", LEASE_S + 15)
            check(cluster, job)


def test_a_turn_that_its_agent_has_given_up_leases_nothing_once_the_wire_is_back(wire: Wire) -> None:
    """The kernel sends again what was not received, and could do so after the agent has said what it holds."""
    cluster = Cluster(nodes=1, slots=2, lease_s=LONG_LEASE_S)
    with Proxy(cluster.redis_server.url, host=wire.ours) as proxy:
        cluster.environments[CUT_OFF] = {"PARALLELRUN_REDIS_URL": proxy.url}
        cluster.prefixes[CUT_OFF] = ["ip", "netns", "exec", wire.name]
        with cluster:
            job = submit(cluster, 300)
            cluster.until(lambda: decisions(cluster, job) > 10, "some are decided")
            wire.lose_packets()
            time.sleep(CUT_S)
            wire.take_packets()
            cluster.until(lambda: cluster.logged(CUT_OFF, "leases_reasserted") > 0, "it is back", LONG_LEASE_S)
            check(cluster, job)
            assert cluster.logged(CUT_OFF, "lease_expired") == 0
            assert cluster.result(job).progress.lost == 0
