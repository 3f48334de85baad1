"""Jobs whose nodes are of images that they name: with Pythons and packages that are not ours."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker as sdk
import pytest

from parallelrun_core.computes.images import image_of
from parallelrun_core.computes.kinds.docker import DockerCompute
from parallelrun_core.computes.launch import Launch, Shape, launch_id
from parallelrun_core.layout import Logs
from parallelrun_provisioner.engines.docker import DockerEngine
from parallelrun_provisioner.engines.docker.settings import DockerSettings
from parallelrun_provisioner.engines.interface import EngineEnvironment
from tests.acceptance.http_user import HttpUser, zip_of
from tests.cluster import Cluster
from tests.engines.images import ENTRY, with_environment, with_other_python
from tests.engines.target import PATIENCE_S
from tests.engines.targets.docker import build

pytestmark = [pytest.mark.acceptance, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(2 * PATIENCE_S)]


class Nodes:
    """A cluster, and an engine that is asked for nodes of images."""

    def __init__(self, cluster: Cluster, user: HttpUser, engine: DockerEngine, pool: str) -> None:
        self.cluster = cluster
        self.user = user
        self.engine = engine
        self.pool = pool
        self.launched: list[str] = []

    def launch(self, image: str) -> str:
        """Ask for a node; returns its name."""
        name = launch_id(self.pool, secrets.token_hex(6))
        variables = {"PARALLELRUN_REDIS_URL": self.cluster.redis_server.url, "PARALLELRUN_ROOT": str(self.cluster.root)}
        arguments = ("--node", name, "--compute", self.pool, "--slots", "1", "--grace-seconds", "1")
        launch = Launch(
            id=name, compute=self.pool, shape=Shape(image=image), arguments=arguments, environment=variables
        )
        self.engine.launch(launch)
        self.launched.append(name)
        return name

    def submit(self, **environment: Any) -> str:
        """Ask for a job with this environment."""
        inputs = str(self.cluster.files(1))
        spec = {"entry_script": "entry.py", "inputs": inputs, "compute": self.pool, "environment": environment}
        return self.user.submit(spec, zip_of({"entry.py": ENTRY}))

    def rows(self, job: str) -> list[str]:
        """The rows of a job that must complete."""
        self.user.completed(job, timeout_s=PATIENCE_S)
        result = self.cluster.folder(job).result()
        assert result is not None
        return self.cluster.output(result)

    def was_built(self, job: str, node: str) -> bool:
        """Whether the node has built the Python of a job."""
        return (Logs(self.cluster.folder(job).logs).of_node(node) / "environment.txt").exists()


@pytest.fixture
def nodes(engine: sdk.DockerClient, tmp_path: Path) -> Iterator[Nodes]:
    kit = build("kit")
    pool = f"pool{secrets.token_hex(3)}"
    with Cluster(nodes=0, api=True, token="token") as cluster, HttpUser(cluster.api_url, "token") as user:
        cluster.home.chmod(0o755)
        settings = DockerSettings(
            kit=kit, images="parallelrun-with-*", networks="host", user="", worker_uids="",
            volumes=f"{cluster.home}:{cluster.home},{cluster.redis_server.folder}:{cluster.redis_server.folder}",
            cache=str(tmp_path),
        )  # fmt: skip
        compute = DockerCompute.model_validate({"type": "docker", "name": pool, "stop_seconds": 5})
        around = EngineEnvironment(cluster=pool, root=cluster.root, redis_url=cluster.redis_server.url)
        made = Nodes(cluster, user, DockerEngine(compute, around, settings), pool)
        user.client.put(f"/v1/computes/{pool}", json={"type": "docker"}).raise_for_status()
        try:
            yield made
        finally:
            while there := made.engine.nodes():
                made.engine.terminate([node.launch_id for node in there])
            made.engine.close()


def test_two_images_with_other_pythons_and_packages_at_the_same_time(nodes: Nodes, engine: sdk.DockerClient) -> None:
    one, (other, version) = with_environment(engine), with_other_python(engine)
    first, second = nodes.submit(image=one, pip=["toml"]), nodes.submit(image=other)
    node, _ = nodes.launch(one), nodes.launch(other)

    assert image_of(nodes.cluster.folder(first).record().spec) == one
    said, said_by_other = nodes.rows(first)[0].split(), nodes.rows(second)[0].split()
    assert said[1:] == ["six", "1.16.0", "toml", "True", "True"]
    assert said_by_other[1:] == ["six", "1.17.0", "toml", "False", "True"]
    assert said_by_other[0].startswith(version)
    assert nodes.was_built(first, node)

    again = nodes.submit(image=one, pip=["toml"])
    assert nodes.rows(again)[0].split() == said
    assert not nodes.was_built(again, node)
