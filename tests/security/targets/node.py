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
from tests.security.target import HttpTarget, Missing, fill, give_secret, settings_of_installers

SERVICES_UID = 64_124
_WORKER_UIDS = "64200-64999"
_SECRET = "secret-of-agents"
FLAGS = ("--worker-uids", _WORKER_UIDS, "--run-as", f"{SERVICES_UID}:{SERVICES_UID}")
"""Of an agent that root has started, whose workers are users of their own."""


@contextmanager
def reach() -> Iterator[HttpTarget]:
    """Start it, with all other services, and stop it at the end."""
    if os.geteuid() != 0:
        raise Missing("only root can run workers as other users")
    with services(agent_flags=FLAGS, services_uid=SERVICES_UID, is_apart=True) as target:
        yield target


@contextmanager
def services(
    *,
    name: str = "node",
    agent_flags: tuple[str, ...] = (),
    settings: dict[str, str] | None = None,
    services_uid: int = 0,
    is_apart: bool = False,
    without: str = "",
) -> Iterator[HttpTarget]:
    """A cluster with an API.

    Args:
        settings: environment variables of the agents, besides those for their installers.
        services_uid: the user that all services are but the agent, which root starts; 0: ours.
        without: the mechanism that is disabled (see `tests.twins.sabotage`).
    """
    options = ("--unixsocketperm", "777") if services_uid else ()  # its folder lets nobody else through
    token = secrets.token_urlsafe(16)
    cluster = Cluster(api=True, token=token, agent_flags=agent_flags, without=without, redis_options=options)
    cluster.is_forked = False
    give_secret(cluster.home / "secrets", services_uid or os.getuid())
    for service in ("master", "concatenator", *cluster.nodes):
        cluster.environments.setdefault(service, {})["PARALLELRUN_SECRETS_DIR"] = str(cluster.home / "secrets")
    for node in cluster.nodes:
        cluster.environments[node].update(
            settings_of_installers(cluster.home / "inputs")
            | {"PARALLELRUN_CACHE_DIR": str(cluster.home / "cache")}
            | {"AWS_EC2_METADATA_DISABLED": "true"}
            | (settings or {})
        )
    for service in ("master", "concatenator"):
        cluster.environments[service] |= {"AWS_ACCESS_KEY_ID": "of-services", "AWS_SECRET_ACCESS_KEY": "anything"}
    secret = cluster.home / _SECRET
    secret.touch(mode=0o600)
    fill(cluster.home / "inputs", (str(secret),))
    if services_uid:
        _hand_over(cluster, services_uid)
    with LocalStore() as store:
        cluster.environments["api"]["PARALLELRUN_ALLOWED_ROOTS"] = f"{cluster.home}:{store.roots}"
        cluster.environments["api"]["PARALLELRUN_VISIBILITY"] = "own"
        cluster.environments["api"]["PARALLELRUN_CLOSED_FOLDERS"] = str(cluster.home / "secrets")
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
                offers_packages=True,
                shows_only_own=True,
            )


def _hand_over(cluster: Cluster, uid: int) -> None:
    """Let a user be all services, and own what is theirs."""
    for folder in (cluster.home, cluster.root, cluster.redis_server.folder, cluster.home / _SECRET):
        os.chown(folder, uid, uid)
    cluster.home.chmod(0o711)
    for name in ("master", "concatenator", "api"):
        cluster.prefixes[name] = command_for(uid)
    for name in cluster.nodes:
        cluster.prefixes[name] = command_for(0)
