"""A cluster without nodes, whose provisioner starts them as processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.computes.document import read_definition
from parallelrun_core.store.provisioning import Provisioning, ProvisioningStatus
from parallelrun_core.store.roles import Role
from tests.cluster import Cluster
from tests.redis_server import SECRETS


class Provisioned:
    """The cluster, and what its provisioner has made."""

    def __init__(self, without: str = "") -> None:
        self.cluster = Cluster(nodes=0, lease_s=2.0, without=without)
        self.catalog = ComputeCatalog(self.cluster.root)

    def start(self, name: str = "provisioner", *options: str) -> None:
        """Start a provisioner."""
        self.cluster.environments[name] = {"PARALLELRUN_AGENT_SECRET": SECRETS[Role.AGENT]}
        self.cluster.add(name, "parallelrun_provisioner.main", "--poll-seconds", "0.1", "--kinds", "local", *options)

    def define(self, name: str, **fields: object) -> None:
        """Define a compute of this machine's processes, one slot each."""
        given = {"type": "local", "slots": 1, "idle_time_before_scale_down": 0.5, **fields}
        self.catalog.define(read_definition(given, name=name))

    def status(self, name: str) -> ProvisioningStatus:
        """How it stands."""
        return Provisioning(self.cluster.redis).status(name) or ProvisioningStatus(at=0.0)

    def agents(self, name: str) -> list[psutil.Process]:
        """The agents of a compute that run, whoever has started them; not what they have just forked, which bears
        their command line until it runs another program.
        """
        agents = {}
        for process in psutil.process_iter(["cmdline", "ppid"]):
            words = " ".join(process.info["cmdline"] or [])
            if "-m parallelrun_core.service.launch parallelrun_agent.main" in words and f"--compute {name} " in words:
                agents[process.pid] = process
        return [process for process in agents.values() if process.info["ppid"] not in agents]

    def remove(self, name: str) -> None:
        """Delete a compute, and wait until nothing is left of it."""
        self.catalog.remove(name)
        self.cluster.until(lambda: not self.agents(name) and not self.catalog.deleted(), f"nothing is left of {name}")


@pytest.fixture(scope="module")
def provisioned() -> Iterator[Provisioned]:
    made = Provisioned()
    with made.cluster:
        made.start()
        try:
            yield made
        finally:
            for name in made.catalog.names():
                for agent in made.agents(name):
                    agent.kill()
