"""A node of root's, whose agent runs each job's workers as a user of their own."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from parallelrun_agent.settings import AgentSettings
from tests.cluster import Cluster
from tests.security.target import HttpTarget, Missing, fill

_WORKER_UIDS = "64200-64999"


@contextmanager
def reach() -> Iterator[HttpTarget]:
    """Start it, with all other services, and stop it at the end."""
    if os.geteuid() != 0:
        raise Missing("only root can run workers as other users")
    if "worker_uids" not in AgentSettings.model_fields:
        raise Missing("agents have no users for workers yet")
    with services(agent_flags=("--worker-uids", _WORKER_UIDS), is_apart=True) as target:
        yield target


@contextmanager
def services(
    *, name: str = "node", agent_flags: tuple[str, ...] = (), is_apart: bool = False, without: str = ""
) -> Iterator[HttpTarget]:
    """A cluster with an API.

    Args:
        without: the mechanism that is disabled (see `tests.twins.sabotage`).
    """
    cluster = Cluster(api=True, agent_flags=agent_flags, without=without)
    token = secrets.token_urlsafe(16)
    cluster.environments["api"] = {"PARALLELRUN_TOKEN": token, "PARALLELRUN_ALLOWED_ROOTS": str(cluster.home)}
    fill(cluster.home / "inputs")
    with cluster:
        yield HttpTarget(
            name=name,
            url=cluster.api_url,
            token=token,
            is_apart=is_apart,
            root=str(cluster.root),
            inputs=cluster.home / "inputs",
            inputs_there=str(cluster.home / "inputs"),
        )
