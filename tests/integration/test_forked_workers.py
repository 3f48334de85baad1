"""Whole jobs whose workers are forked from a template, and what is left when workers, template or agent are killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.cluster import Cluster
from tests.integration.worker.worker_harness import is_alive

pytestmark = pytest.mark.integration

SCRIPT = """
import os
import time
import pandas
HOLD = {hold!r}
def run(items):
    with open(os.path.join({folder!r}, f"{{os.getpid()}}.pid"), "w"):
        pass
    while os.path.exists(HOLD):
        time.sleep(0.01)
    return items
"""


def pids_in(folder: Path) -> set[int]:
    """The workers that have begun to run a mini-batch."""
    return {int(file.stem) for file in folder.glob("*.pid")}


def forking_cluster() -> Cluster:
    cluster = Cluster(nodes=1, slots=1)
    cluster.environments["node000"] = {"PARALLELRUN_FORK_WORKERS": "true"}
    return cluster


def children_of(cluster: Cluster, node: str) -> set[int]:
    return {child.pid for child in psutil.Process(cluster.processes[node].pid).children()}


def test_a_worker_that_is_killed_is_replaced_by_a_forked_one(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    with forking_cluster() as cluster:
        node = cluster.nodes[0]
        script = SCRIPT.format(hold=str(hold), folder=str(tmp_path))
        job = cluster.submit(script, inputs=cluster.files(40), mini_batch_size=1, run_max_try=5)
        cluster.until(lambda: len(pids_in(tmp_path)) == 1, "the first one runs")
        cluster.until(lambda: cluster.logged(node, "template_ready") == 1, "there is a template", timeout_s=90)
        (first,) = pids_in(tmp_path)
        os.kill(first, signal.SIGKILL)
        cluster.until(lambda: len(pids_in(tmp_path)) == 2, "the second one runs")
        (second,) = pids_in(tmp_path) - {first}
        assert cluster.log(node).count('"is_forked": true') == 1
        assert [process.pid for process in cluster.workers(node)] == [second]
        (template,) = children_of(cluster, node) - {second}
        os.kill(template, signal.SIGKILL)
        os.kill(second, signal.SIGKILL)
        cluster.until(lambda: len(pids_in(tmp_path)) == 3, "the third one runs, without a template")
        (third,) = pids_in(tmp_path) - {first, second}
        assert cluster.logged(node, "template_given_up") == 1
        hold.unlink()
        result = cluster.result(job, timeout_s=90)
        assert result.state == "completed", result.failure
        assert len(cluster.output(result)) == 40
        cluster.until(lambda: not is_alive(third), "it has ended with the job")


def test_what_is_forked_ends_with_its_agent(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    with forking_cluster() as cluster:
        node = cluster.nodes[0]
        script = SCRIPT.format(hold=str(hold), folder=str(tmp_path))
        job = cluster.submit(script, inputs=cluster.files(4), mini_batch_size=1, run_max_try=5)
        cluster.until(lambda: cluster.logged(node, "template_ready") == 1, "there is a template", timeout_s=90)
        (first,) = pids_in(tmp_path)
        os.kill(first, signal.SIGKILL)
        cluster.until(lambda: len(pids_in(tmp_path)) == 2, "a forked one runs")
        children = children_of(cluster, node)
        assert len(children) == 2
        cluster.kill(node)
        cluster.until(lambda: not any(map(is_alive, children)), "worker and template end with their agent")
        hold.unlink()
        cluster.start(node)
        assert cluster.result(job, timeout_s=90).state == "completed"


def test_a_node_forks_no_worker_unless_it_is_told_to(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    with Cluster(nodes=1, slots=1) as cluster:
        script = SCRIPT.format(hold=str(hold), folder=str(tmp_path))
        job = cluster.submit(script, inputs=cluster.files(4), mini_batch_size=1)
        assert cluster.result(job, timeout_s=90).state == "completed"
        cluster.until(lambda: not children_of(cluster, "node000"), "its worker has ended")
        assert '"is_forked": true' not in cluster.log("node000")
