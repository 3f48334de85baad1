"""Containers and services of a real Docker Engine: launched once, known again, ended, and why not."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker as sdk
import pytest

from parallelrun_core.computes.kinds.docker import DockerCompute
from parallelrun_core.computes.kinds.swarm import SwarmCompute
from parallelrun_core.computes.launch import Launch, launch_id
from parallelrun_provisioner.engines.docker import DockerEngine
from parallelrun_provisioner.engines.docker.settings import DockerSettings
from parallelrun_provisioner.engines.interface import Engine, EngineEnvironment, EngineNode, LaunchRefused, NodeStanding
from parallelrun_provisioner.engines.swarm import SwarmEngine
from tests.engines.conftest import STAND_IN

pytestmark = [pytest.mark.acceptance, pytest.mark.docker, pytest.mark.slow]

SETTINGS = DockerSettings(image=STAND_IN, images="no-such-image:*", networks="host")
Make = Callable[..., Engine]


@pytest.fixture(params=["docker", "swarm"])
def make(request: pytest.FixtureRequest, engine: sdk.DockerClient) -> Iterator[Make]:
    """Makes engines for a compute of the same cluster; at the end nothing is left of them."""
    around = EngineEnvironment(cluster=secrets.token_hex(4), root=Path("/tmp"), redis_url="redis://127.0.0.1:1/0")
    if request.param == "swarm" and engine.info()["Swarm"]["LocalNodeState"] == "inactive":
        engine.swarm.init(advertise_addr="127.0.0.1")
    made: list[Engine] = []

    def an_engine(**fields: Any) -> Engine:
        given = {"name": "pool", "type": request.param, "stop_seconds": 2, **fields}
        if request.param == "docker":
            made.append(DockerEngine(DockerCompute.model_validate(given), around, SETTINGS))
        else:
            made.append(SwarmEngine(SwarmCompute.model_validate(given), around, SETTINGS))
        return made[-1]

    try:
        yield an_engine
    finally:
        for each in made:
            until(each, lambda nodes: not nodes, terminate=True)
            each.close()


def new(*arguments: str) -> Launch:
    return Launch(id=launch_id("pool", secrets.token_hex(6)), compute="pool", arguments=arguments)


def until(
    engine: Engine, condition: Callable[[dict[str, EngineNode]], bool], *, terminate: bool = False
) -> dict[str, EngineNode]:
    """Poll the engine's nodes until they are as wanted."""
    deadline = time.monotonic() + 30
    while True:
        nodes = {node.launch_id: node for node in engine.nodes()}
        if condition(nodes):
            return nodes
        if terminate:
            engine.terminate(list(nodes))
        assert time.monotonic() < deadline, nodes
        time.sleep(0.05)  # an engine that is polled gives no sign


def test_a_launch_is_one_node_however_often_it_is_asked_for_and_by_whom(make: Make) -> None:
    engine, another, launch = make(), make(), new("working")

    engine.launch(launch)
    another.launch(launch)
    until(engine, lambda nodes: nodes[launch.id].standing is NodeStanding.RUNNING)
    engine.launch(launch)

    assert [node.launch_id for node in another.nodes()] == [launch.id]


def test_one_that_fails_says_why_and_is_not_started_again(make: Make) -> None:
    engine, launch = make(), new("failing")

    engine.launch(launch)
    node = until(engine, lambda nodes: nodes[launch.id].standing is NodeStanding.ENDED)[launch.id]
    engine.launch(launch)

    assert node.exit_code == 3
    assert "no room on the device" in node.words or "non-zero exit (3)" in node.words
    assert {node.standing for node in engine.nodes()} == {NodeStanding.ENDED}
    engine.terminate([launch.id, "pool-000000000000"])
    until(engine, lambda nodes: not nodes)


def test_one_that_ignores_its_end_is_killed_in_time(make: Make) -> None:
    engine, launch = make(), new("stubborn")
    engine.launch(launch)
    until(engine, lambda nodes: nodes[launch.id].standing is NodeStanding.RUNNING)

    engine.terminate([launch.id])

    until(engine, lambda nodes: not nodes, terminate=True)


def test_what_can_not_be_had_is_said_in_the_engines_words(make: Make) -> None:
    said = {}
    for field, value in (("cpus", 4096), ("gpus", 1), ("image", "no-such-image:1")):
        engine, launch = make(**{field: value}), new("working")
        try:
            engine.launch(launch)
            nodes = until(engine, lambda nodes: any(map(says, nodes.values())))
            said[field] = nodes[launch.id].words
            until(engine, lambda nodes: not nodes, terminate=True)
        except LaunchRefused as refused:
            said[field] = str(refused)

    assert "CPUs" in said["cpus"] or "insufficient resources" in said["cpus"]
    assert "device driver" in said["gpus"] or "insufficient resources" in said["gpus"]
    assert "image" in said["image"].lower() or "registry" in said["image"]


def says(node: EngineNode) -> bool:
    """Whether the engine says why it isn't running."""
    return node.standing is NodeStanding.ENDED or "insufficient" in node.words
