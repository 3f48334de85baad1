"""A node that Redis has left for good ends by itself, after as long as it was told; a short outage ends none."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from parallelrun_core.store.fitness import EXIT_ALONE
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

ALONE_S = 3.0
_ENDS_S = 20
_SLOW = """
import time
def run(mini_batch):
    time.sleep(0.1)
    return mini_batch
"""
_NODE = "node000"


def outage(cluster: Cluster, seconds: float, number: int) -> None:
    """Let Redis be away, until the node has seen it come back for so many times."""
    cluster.redis_server.kill()
    time.sleep(seconds)
    cluster.redis_server.start()
    cluster.until(lambda: cluster.logged(_NODE, "redis_back") == number, "the node sees Redis again")


def check_its_end(without: str = "") -> None:
    """A node with work in hand, whose Redis is away for a moment, and then for good."""
    flags = ("--alone-seconds", str(ALONE_S), "--grace-seconds", "1")
    with Cluster(nodes=1, slots=1, lease_s=2, agent_flags=flags, without=without) as cluster:
        agent = psutil.Process(cluster.processes[_NODE].pid)
        for outages in (1, 2, 3):  # together longer than it may be alone
            outage(cluster, ALONE_S / 2, outages)
        job = cluster.submit(_SLOW, inputs=cluster.files(40), mini_batch_size=1)
        assert cluster.result(job).state is JobState.COMPLETED

        cluster.submit(_SLOW, inputs=cluster.files(2000), mini_batch_size=1)
        cluster.until(lambda: bool(cluster.workers(_NODE)), "it has work in hand")
        workers = agent.children(recursive=True)
        began = time.monotonic()
        cluster.redis_server.kill()
        cluster.until(lambda: cluster.processes[_NODE].poll() is not None, "it ends by itself", _ENDS_S)
        assert time.monotonic() - began >= ALONE_S - 0.5
        assert cluster.processes[_NODE].returncode == EXIT_ALONE
        assert cluster.logged(_NODE, "left_alone") == 1
        assert not psutil.wait_procs(workers, timeout=5)[1], "its workers end with it"


def test_a_short_outage_ends_no_node_and_one_for_good_ends_it() -> None:
    check_its_end()


def test_a_node_that_never_finds_redis_ends(tmp_path: Path) -> None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "parallelrun_agent.main", "--redis-url", f"unix://{tmp_path}/none.sock",
         "--root", str(tmp_path), "--alone-seconds", "1"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == EXIT_ALONE, done.stderr
    assert '"action": "left_alone"' in done.stderr.splitlines()[-1]
    assert time.monotonic() - began >= 1
