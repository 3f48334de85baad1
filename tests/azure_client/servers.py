"""The servers that the scripts are played against."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from parallelrun.embedded.cluster import Cluster
from tests.acceptance import engine
from tests.acceptance.compose import Compose


@dataclass(frozen=True)
class Server:
    """Where it is, and who may use it."""

    url: str
    token: str
    root: Path
    """Its root folder; that of containers is in a volume."""


@contextmanager
def connected(server: Server) -> Iterator[dict[str, str]]:
    """The environment in which the client finds a server, as `parallelrun azure-env` prints it."""
    variables = {**os.environ, "PARALLELRUN_URL": server.url, "PARALLELRUN_TOKEN": server.token}
    printed = _azure_env(variables, "-o", "json")
    try:
        yield {**os.environ, **json.loads(printed)}
    finally:
        _azure_env(variables, "--stop")


@contextmanager
def embedded(home: Path, *, nodes: int = 1, has_computes: bool = False) -> Iterator[Server]:
    """A cluster of processes; with a provisioner, if it has computes, whose nodes are processes, too."""
    with Cluster(home / "cluster", nodes=nodes, processes=2, has_computes=has_computes) as cluster:
        yield Server(cluster.url, cluster.token, cluster.layout.root)


@contextmanager
def containers(home: Path) -> Iterator[Server]:
    """Those of docker-compose.yml, with one node.

    Raises:
        EngineMissing: there is no engine to run them.
    """
    with closing(engine.reach()) as client:
        inputs = home / "inputs"
        inputs.mkdir()
        compose = Compose(client, inputs)
        try:
            compose.start(agents=1)
            with compose.user() as user:
                yield Server(compose.url(), user.token, Path("/"))
        finally:
            compose.remove()


def _azure_env(variables: dict[str, str], *options: str) -> str:
    command = [sys.executable, "-m", "parallelrun", "azure-env", *options]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise SystemExit(f"azure-env {' '.join(options)}: {done.stderr}")
    return done.stdout
