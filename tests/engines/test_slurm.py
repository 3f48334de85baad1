"""Jobs of a real Slurm: launched once, known again, ended, and why not; and what becomes of work in them."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.computes.kinds.slurm import SlurmCompute
from parallelrun_core.computes.launch import Launch, launch_id
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.store.roles import Role
from parallelrun_core.wire.states import JobState
from parallelrun_provisioner.engines.interface import EngineEnvironment, EngineNode, LaunchRefused, NodeStanding
from parallelrun_provisioner.engines.slurm import SlurmEngine
from tests.cluster import Cluster
from tests.engines import slurm
from tests.engines.target import PATIENCE_S
from tests.redis_server import SECRETS

pytestmark = [pytest.mark.acceptance, pytest.mark.slurm, pytest.mark.slow, pytest.mark.timeout(PATIENCE_S)]

STAND_IN = """#!/bin/sh
shift 4
case "$1" in failing) echo "there is no room on the device"; exit 3;; esac
trap 'echo told >>"$PARALLELRUN_ROOT/told"; exit 0' TERM
echo ready >"$PARALLELRUN_ROOT/ready"
while :; do sleep 0.1; done
"""
SLOW = """
import os, time
def run(items):
    time.sleep(0.3)
    return [os.path.basename(item) for item in items]
"""
Make = Callable[..., SlurmEngine]


@pytest.fixture(scope="module", autouse=True)
def a_slurm() -> None:
    missing = ""
    try:
        slurm.reach()
    except slurm.SlurmMissing as error:
        missing = str(error)
    if missing and slurm.is_required():
        pytest.fail(f"{slurm.REQUIRED} is set, but {missing}", pytrace=False)
    if missing:
        pytest.skip(missing)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes engines for a compute of the same cluster, whose agents only pretend to work; ends their jobs."""
    agent = tmp_path / "python3"
    agent.write_text(STAND_IN)
    agent.chmod(0o755)
    around = EngineEnvironment(cluster=secrets.token_hex(4), root=tmp_path, redis_url="redis://127.0.0.1:1/0")

    def an_engine(**fields: Any) -> SlurmEngine:
        given = {"type": "slurm", "name": "pool", "cpus": 1, "python": str(agent), **fields}
        return SlurmEngine(SlurmCompute.model_validate(given), around)

    yield an_engine
    end_all(an_engine())


def end_all(engine: SlurmEngine) -> None:
    """End what an engine has, and wait for it."""
    ours = {node.launch_id for node in engine.nodes()}
    for name, job in slurm.jobs().items():
        if name in ours:
            slurm.cancel(job, "--signal=KILL", "--full")
            slurm.cancel(job)
    until(engine, lambda nodes: all(node.standing is NodeStanding.ENDED for node in nodes.values()))


def new(*arguments: str) -> Launch:
    return Launch(id=launch_id("pool", secrets.token_hex(6)), compute="pool", arguments=arguments)


def until(engine: SlurmEngine, condition: Callable[[dict[str, EngineNode]], bool]) -> dict[str, EngineNode]:
    """Poll the engine's nodes until they are as wanted."""
    deadline = time.monotonic() + 60
    while True:
        nodes = {node.launch_id: node for node in engine.nodes()}
        if condition(nodes):
            return nodes
        assert time.monotonic() < deadline, nodes
        time.sleep(0.05)  # an engine that is polled gives no sign


def test_a_launch_is_one_job_however_often_it_is_asked_for_and_by_whom(make: Make, tmp_path: Path) -> None:
    engine, another, launch = make(walltime="10"), make(walltime="10"), new("working")

    engine.launch(launch)
    another.launch(launch)
    node = until(engine, lambda nodes: nodes[launch.id].standing is NodeStanding.RUNNING)[launch.id]
    engine.launch(launch)

    assert len([name for name in slurm.jobs() if name == launch.id]) == 1
    assert node.ends_at is not None
    assert 0 < node.ends_at - time.time() <= 600
    until(engine, lambda _: (tmp_path / "ready").exists())
    another.terminate([launch.id])
    node = until(engine, lambda nodes: nodes[launch.id].standing is NodeStanding.ENDED)[launch.id]
    assert (node.exit_code, node.was_preempted) == (0, False)
    assert (tmp_path / "told").read_text() == "told\n"


def test_one_that_fails_says_why(make: Make) -> None:
    engine, launch = make(), new("failing")
    engine.launch(launch)
    node = until(engine, lambda nodes: nodes[launch.id].standing is NodeStanding.ENDED)[launch.id]
    assert "NonZeroExitCode" in node.words
    assert "no room on the device" in node.words
    assert not node.was_preempted


def test_what_can_not_be_had_is_said_in_slurms_words(make: Make) -> None:
    with pytest.raises(LaunchRefused, match="invalid partition specified: nowhere"):
        make(partition="nowhere").launch(new())
    with pytest.raises(LaunchRefused, match="generic resource"):
        make(gpus=1).launch(new())
    engine, launch = make(cpus=4096), new()
    engine.launch(launch)
    assert "will not start" in until(engine, lambda nodes: "not start" in nodes[launch.id].words)[launch.id].words
    engine.terminate([launch.id])


def test_a_node_that_slurm_ends_with_all_its_processes_costs_no_try() -> None:
    """As by preemption: SIGTERM reaches the workers, too, in the middle of a mini-batch."""
    with Cluster(nodes=0) as cluster:
        around = EngineEnvironment(
            cluster=secrets.token_hex(4), root=cluster.root, redis_url=cluster.redis_server.url,
            agent_secret=SECRETS[Role.AGENT],
        )  # fmt: skip
        engine = SlurmEngine(SlurmCompute(type="slurm", name="pool", cpus=1, python=sys.executable), around)

        def launch() -> str:
            asked = new()
            engine.launch(Launch(id=asked.id, compute="pool", arguments=("--node", asked.id, "--slots", "2")))
            return asked.id

        try:
            first = launch()
            job = cluster.submit(SLOW, inputs=cluster.files(40), mini_batch_size=1)
            cluster.until(lambda: _done(cluster, job) > 4, "it works", PATIENCE_S)
            slurm.cancel(slurm.jobs()[first])
            assert until(engine, lambda nodes: nodes[first].standing is NodeStanding.ENDED)[first].was_preempted
            launch()
            result = cluster.result(job, 100)
            assert result.state is JobState.COMPLETED
            assert {outcome.tries for outcome in read_decisions(cluster.folder(job).path)} == {1}
            assert result.progress.retried == 0
        finally:
            end_all(engine)


def _done(cluster: Cluster, job: str) -> int:
    return len(list(read_decisions(cluster.folder(job).path)))
