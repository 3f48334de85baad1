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


def one_node(**settings: str) -> Cluster:
    cluster = Cluster(nodes=1, slots=1)
    cluster.environments[cluster.nodes[0]] = settings
    return cluster


def children_of(cluster: Cluster, node: str) -> set[int]:
    return {child.pid for child in psutil.Process(cluster.processes[node].pid).children()}


def test_a_worker_that_is_killed_is_replaced_by_a_forked_one(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    with one_node() as cluster:
        node = cluster.nodes[0]
        script = SCRIPT.format(hold=str(hold), folder=str(tmp_path))
        job = cluster.submit(script, inputs=cluster.files(40), mini_batch_size=1, run_max_try=5)
        cluster.until(lambda: len(pids_in(tmp_path)) == 1, "the first one runs", timeout_s=90)
        assert cluster.logged(node, "template_ready") == 1
        (first,) = pids_in(tmp_path)
        os.kill(first, signal.SIGKILL)
        cluster.until(lambda: len(pids_in(tmp_path)) == 2, "the second one runs")
        (second,) = pids_in(tmp_path) - {first}
        assert cluster.log(node).count('"is_forked": true') == 2
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
    with one_node() as cluster:
        node = cluster.nodes[0]
        script = SCRIPT.format(hold=str(hold), folder=str(tmp_path))
        job = cluster.submit(script, inputs=cluster.files(4), mini_batch_size=1, run_max_try=5)
        cluster.until(lambda: len(pids_in(tmp_path)) == 1, "a forked one runs", timeout_s=90)
        children = children_of(cluster, node)
        assert len(children) == 2
        cluster.kill(node)
        cluster.until(lambda: not any(map(is_alive, children)), "worker and template end with their agent")
        hold.unlink()
        cluster.start(node)
        assert cluster.result(job, timeout_s=90).state == "completed"


AT_ONCE = """
import os, sys, time
if "template" in sys.orig_argv and not os.fork():
    os.setsid()
    if not os.fork():
        with open({file!r}, "w") as file:
            file.write(str(os.getpid()))
        time.sleep(1000)
    os._exit(0)
"""


def test_what_a_template_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    hold, left = tmp_path / "hold", tmp_path / "left"
    hold.touch()
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "sitecustomize.py").write_text(AT_ONCE.format(file=str(left)))
    with one_node() as cluster:
        node = cluster.nodes[0]
        script = SCRIPT.format(hold=str(hold), folder=str(tmp_path))
        variables = {"PYTHONPATH": str(tmp_path / "packages")}
        inputs = cluster.files(4)
        job = cluster.submit(script, inputs=inputs, mini_batch_size=1, environment_variables=variables)
        cluster.until(lambda: cluster.logged(node, "template_given_up") == 1, "it is unfit", timeout_s=90)
        cluster.until(lambda: left.exists() and left.read_text() != "", "it has begun another process")
        cluster.until(lambda: not is_alive(int(left.read_text())), "which ends, though no worker has")
        cluster.until(lambda: len(pids_in(tmp_path)) == 1, "a worker runs, by itself", timeout_s=90)
        (worker,) = pids_in(tmp_path)
        assert is_alive(worker)
        hold.unlink()
        assert cluster.result(job, timeout_s=90).state == "completed"


def test_a_node_forks_no_worker_where_its_operator_says_so(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    with one_node(PARALLELRUN_FORK_WORKERS="false") as cluster:
        node = cluster.nodes[0]
        script = SCRIPT.format(hold=str(hold), folder=str(tmp_path))
        job = cluster.submit(script, inputs=cluster.files(4), mini_batch_size=1, run_max_try=5)
        cluster.until(lambda: len(pids_in(tmp_path)) == 1, "the first one runs", timeout_s=90)
        (first,) = pids_in(tmp_path)
        os.kill(first, signal.SIGKILL)
        cluster.until(lambda: len(pids_in(tmp_path)) == 2, "the second one runs", timeout_s=90)
        hold.unlink()
        assert cluster.result(job, timeout_s=90).state == "completed"
        assert '"is_forked": true' not in cluster.log(node)
        assert "template" not in cluster.log(node)
