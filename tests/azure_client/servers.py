"""The servers that the scripts are played against."""

from __future__ import annotations

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


@contextmanager
def embedded(home: Path) -> Iterator[Server]:
    """A cluster of processes, with one node."""
    with Cluster(home / "cluster", nodes=1, processes=2) as cluster:
        yield Server(cluster.url, cluster.token)


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
                yield Server(compose.url(), user.token)
        finally:
            compose.remove()
