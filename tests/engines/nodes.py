"""A cluster without nodes, until an engine provides them: the services are processes of this machine."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import httpx

from parallelrun_core.store.roles import Role
from tests.acceptance.http_user import HttpUser
from tests.cluster import Cluster
from tests.engines.target import PATIENCE_S, Target
from tests.redis_server import SECRETS

PROVISIONER = "provisioner"
_TOKEN = "token"
_STEP_S = 0.1


class Provisioned:
    """A cluster with one compute; use it in a `with` statement.

    Args:
        inputs: further folders of this machine that nodes see.
    """

    def __init__(self, target: Target, *, most: int, idle_s: float = 2, inputs: tuple[Path, ...] = ()) -> None:
        self.target = target
        self.pool = f"pool{secrets.token_hex(3)}"
        """The compute; engines are shared with other tests."""
        self.cluster = Cluster(nodes=0, api=True, token=_TOKEN)
        home = self.cluster.home
        home.chmod(0o755)
        secret = home / "secret"
        secret.mkdir(mode=0o700)
        (secret / "secret").touch(mode=0o600)
        (secret / "secret").write_text(SECRETS[Role.AGENT])
        self.cluster.environments[PROVISIONER] = {
            "PARALLELRUN_AGENT_SECRET_FILE": str(secret / "secret"),
            **target.environment([home, self.cluster.redis_server.folder, *inputs], secret),
        }
        self._definition = {**target.document(), "max_instances": most, "idle_time_before_scale_down": idle_s}

    def __enter__(self) -> Self:
        self.cluster.__enter__()
        self.user = HttpUser(self.cluster.api_url, _TOKEN)
        self.user.wait_until_ready()
        self.user.client.put(f"/v1/computes/{self.pool}", json=self._definition).raise_for_status()
        self.cluster.add(PROVISIONER, "parallelrun_provisioner.main", "--kinds", self.target.name)
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            if exc_info[0] is None:
                self.user.client.delete(f"/v1/computes/{self.pool}").raise_for_status()
                self.cluster.until(lambda: not self._left(), "nothing is left of the compute", PATIENCE_S)
        finally:
            self.user.__exit__()
            self.cluster.kill(PROVISIONER)  # or it would replace them
            for launch_id in self._left():
                self.target.remove(launch_id)
            self.cluster.__exit__(*exc_info)

    def _left(self) -> list[str]:
        return [launch_id for launch_id in self.target.left() if launch_id.startswith(f"{self.pool}-")]

    def ours(self) -> list[str]:
        """The nodes that the engine runs for this compute."""
        return [launch_id for launch_id in self.target.running() if launch_id.startswith(f"{self.pool}-")]

    def at_work(self) -> list[str]:
        """Those of `ours` whose agents have come. One that dies before is a launch that has failed, and not a node."""
        try:
            nodes = self.user.client.get("/v1/nodes").raise_for_status().json()["items"]
        except httpx.HTTPError:  # Redis is away
            return []
        came = {node["node"] for node in nodes if node["state"] != "lost"}
        return [launch_id for launch_id in self.ours() if launch_id in came]

    @contextmanager
    def watched(self) -> Iterator[Idle]:
        """Measure meanwhile how long nodes are there, and how long they have nothing to do."""
        idle = Idle(self)
        idle.start()
        try:
            yield idle
        finally:
            idle.stop()


class Idle(threading.Thread):
    """Adds up the seconds of ready nodes, and of those without a worker."""

    def __init__(self, provisioned: Provisioned) -> None:
        super().__init__(daemon=True)
        self._provisioned = provisioned
        self._is_over = threading.Event()
        self.node_s = 0.0
        self.idle_s = 0.0

    def run(self) -> None:
        with HttpUser(self._provisioned.cluster.api_url, _TOKEN) as user:
            before = time.monotonic()
            while not self._is_over.wait(_STEP_S):
                now = time.monotonic()
                try:
                    nodes = user.client.get("/v1/nodes").raise_for_status().json()["items"]
                except httpx.HTTPError:  # Redis is away
                    continue
                there = [node for node in nodes if node["state"] != "lost"]
                self.node_s += len(there) * (now - before)
                self.idle_s += sum(not node["jobs"] for node in there) * (now - before)
                before = now

    def stop(self) -> None:
        """Measure no more."""
        self._is_over.set()
        self.join()

    @property
    def percent(self) -> float:
        """The share of the nodes' time in which they had nothing to do."""
        return 100 * self.idle_s / self.node_s if self.node_s else 0.0
