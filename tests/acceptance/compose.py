"""The containers of docker-compose.yml, under a project name of their own."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.acceptance.http_user import HttpUser

if TYPE_CHECKING:
    import docker
    from docker.models.containers import Container

ROOT = Path(__file__).parents[2]
_PATIENCE_S = 1800
"""How long to wait for what takes a minute or two, unless machine and disk are busy with other things."""


class Compose:
    """One project. Commands go through `docker compose`, as users give them; what is there is asked of the engine."""

    def __init__(self, engine: docker.DockerClient, inputs: Path) -> None:
        self.engine = engine
        self.inputs = inputs
        """The folder on this machine that the containers know as /inputs."""
        self.project = f"parallelrun-test-{secrets.token_hex(4)}"
        self._environment = {
            **os.environ,
            "PARALLELRUN_INPUTS": str(inputs),
            "PARALLELRUN_PORT": "0",
            "PARALLELRUN_TOKEN": "",
            "PARALLELRUN_ALLOWED_ROOTS": "/inputs:/outputs:abfss://container@account.dfs.core.windows.net",
            "PARALLELRUN_AGENT_REQUIREMENTS": "examples.txt",
        }

    def run(self, *arguments: str, timeout_s: float = _PATIENCE_S) -> str:
        """`docker compose …`; returns what it printed, fails the test when it failed."""
        command = ["docker", "compose", "--project-name", self.project, "--file", "docker-compose.yml", *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=self._environment, capture_output=True, text=True, timeout=timeout_s, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"docker compose {' '.join(arguments)}: {done.stdout[-2000:]}{done.stderr[-1500:]}"
        return done.stdout

    def start(self, agents: int) -> None:
        """Build both images and start everything; returns when all is healthy."""
        # One after the other: what the two have in common is then built once, by any builder.
        self.run("build", "agents")
        self.run("build", "api")
        try:
            self.run("up", "--detach", "--wait", "--wait-timeout", str(_PATIENCE_S // 2), "--scale", f"agents={agents}")
        except AssertionError as error:
            # What went wrong comes last: of a long log, the end is what people are shown.
            raise AssertionError(f"{self.log()}\n{self.run('ps', '--all')}\n{error}") from None

    def scale(self, user: HttpUser, agents: int) -> None:
        """As the README says it; returns when that many nodes are ready, and no other is left."""
        self.run("up", "--detach", "--scale", f"agents={agents}")
        self.wait_for_nodes(user, agents)

    def wait_for_nodes(self, user: HttpUser, count: int, timeout_s: float = _PATIENCE_S) -> None:
        """Wait until so many nodes are ready, and none is on its way out."""
        deadline = time.monotonic() + timeout_s
        while True:
            states = [state for state in user.nodes().values() if state != "lost"]
            if states == ["ready"] * count:
                return
            assert time.monotonic() < deadline, f"{count} nodes wanted, not {states}"
            time.sleep(0.1)  # the API has no event for nodes

    def containers(self, service: str = "") -> list[Container]:
        """The containers of a service, or of all of them, that run."""
        labels = [f"com.docker.compose.project={self.project}"]
        if service:
            labels.append(f"com.docker.compose.service={service}")
        return self.engine.containers.list(filters={"label": labels})

    def url(self) -> str:
        """Where the API is on this machine."""
        return f"http://{self.run('port', 'api', '8080').strip()}"

    def server_url(self) -> str:
        """Where the API's container is on the engine's bridge.

        A port of this machine's loopback leads through the engine's `docker-proxy`, which takes six descriptors for
        each connection, and ends for good with the first one that it can't accept.
        """
        [container] = self.containers("api")
        networks = container.attrs["NetworkSettings"]["Networks"].values()
        return f"http://{next(network['IPAddress'] for network in networks)}:8080"

    def user(self) -> HttpUser:
        """Somebody who has read the token as the README says, once the API takes jobs."""
        user = HttpUser(self.url(), self.run("exec", "-T", "api", "cat", "/state/parallelrun/token").strip())
        user.wait_until_ready()
        return user

    def log(self, service: str = "") -> str:
        """The ends of the containers' logs."""
        return self.run("logs", "--no-color", "--tail", "60", *([service] if service else []))

    def remove(self) -> None:
        """Everything but the images, which the next session builds upon."""
        self.run("down", "--volumes", "--remove-orphans", "--timeout", "5")
