"""A node that root has started, whose agent runs each job's workers as a user of their own.

All services are one user, to whom the shared folder belongs. The agent is that user, too, with what it takes to start
processes of others.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster import Cluster
from tests.security.as_user import command_for
from tests.security.local_store import LocalStore
from tests.security.target import INSTALLERS_SECRETS, HttpTarget, Missing, fill, give_secret

_SERVICES_UID = 64_124
_WORKER_UIDS = "64200-64999"


@contextmanager
def reach() -> Iterator[HttpTarget]:
    """Start it, with all other services, and stop it at the end."""
    if os.geteuid() != 0:
        raise Missing("only root can run workers as other users")
    flags = ("--worker-uids", _WORKER_UIDS, "--run-as", f"{_SERVICES_UID}:{_SERVICES_UID}")
    with services(agent_flags=flags, services_uid=_SERVICES_UID, is_apart=True) as target:
        yield target


@contextmanager
def services(
    *,
    name: str = "node",
    agent_flags: tuple[str, ...] = (),
    services_uid: int = 0,
    is_apart: bool = False,
    without: str = "",
) -> Iterator[HttpTarget]:
    """A cluster with an API.

    Args:
        services_uid: the user that all services are but the agent, which root starts; 0: ours.
        without: the mechanism that is disabled (see `tests.twins.sabotage`).
    """
    options = ("--unixsocketperm", "777") if services_uid else ()  # its folder lets nobody else through
    token = secrets.token_urlsafe(16)
    cluster = Cluster(api=True, token=token, agent_flags=agent_flags, without=without, redis_options=options)
    give_secret(cluster.home / "secrets", services_uid or os.getuid())
    for service in ("master", "concatenator", *cluster.nodes):
        cluster.environments.setdefault(service, {})["PARALLELRUN_SECRETS_DIR"] = str(cluster.home / "secrets")
    for node in cluster.nodes:
        cluster.environments[node].update(INSTALLERS_SECRETS)
    fill(cluster.home / "inputs")
    if services_uid:
        _hand_over(cluster, services_uid)
    with LocalStore() as store:
        cluster.environments["api"]["PARALLELRUN_ALLOWED_ROOTS"] = f"{cluster.home}:{store.roots}"
        with cluster:
            yield HttpTarget(
                name=name,
                url=cluster.api_url,
                token=token,
                is_apart=is_apart,
                root=str(cluster.root),
                inputs=cluster.home / "inputs",
                inputs_there=str(cluster.home / "inputs"),
                store=store,
            )


def _hand_over(cluster: Cluster, uid: int) -> None:
    """Let a user be all services, and own what is theirs."""
    for folder in (cluster.home, cluster.root, cluster.redis_server.folder):
        os.chown(folder, uid, uid)
    cluster.home.chmod(0o711)
    for name in ("master", "concatenator", "api"):
        cluster.prefixes[name] = command_for(uid)
    for name in cluster.nodes:
        cluster.prefixes[name] = command_for(0)
