"""The processes of an embedded cluster, and their settings. Nothing is started here."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from parallelrun.embedded.launcher import Service
from parallelrun.embedded.redis_server import RedisServer
from parallelrun_core.assets.site import VARIABLE as SITE
from parallelrun_core.service import secret_sources
from parallelrun_core.storage.path_rule import EVERYWHERE
from parallelrun_core.store.roles import Role

REDIS: Final = "redis"
_PREFIX: Final = "PARALLELRUN_"
_SECRET: Final = "PARALLELRUN_SECRET_"  # noqa: S105 - a prefix of names
"""What the variables begin with that jobs refer to as their secrets, and only agents need."""
# The settings of another cluster must not reach this one through the user's shell: where it is, and who may what there.
_PASSED_ON: Final = tuple(
    _PREFIX + name
    for name in (
        "ALLOW_SOURCE_PACKAGES", "COST_PER_*", "DISK_FLOOR_BYTES", "ENVIRONMENTS_KEPT", "FAILPOINTS", "FORK_WORKERS",
        "GPUS", "KEEP_*",
        "LEADER_SECONDS", "LEASE_SECONDS", "LOG_FORMAT", "MAX_LOG_BYTES", "MAX_UPLOAD_BYTES", "MLFLOW_EXPERIMENT",
        "MLFLOW_TRACKING_URI", "MOST_SLOTS", "NODE_ALONE_SECONDS", "SHUTDOWN_SECONDS", "STAGE_BYTES", "SWEEP_MINUTES",
        "TRACE_MINI_BATCHES", "VISIBILITY",
    )
)  # fmt: skip
"""Patterns of the variables that services take from the user's environment: how a cluster behaves, wherever it is."""
_KINDS: Final = "PARALLELRUN_KINDS"
_AGENT_GRACE_S: Final = 5.0
_LEADERS_NICE: Final = 5
"""Nobody waits for a single step of theirs, as one does for an answer of the API, or of Redis."""
_RELEASE_S: Final = 45.0
"""How long a provisioner has to give back all nodes; it takes 35 s at most, and what one call of an engine takes."""


@dataclass(frozen=True, kw_only=True)
class ClusterLayout:
    """The paths of an embedded cluster, below one folder."""

    home: Path

    @property
    def root(self) -> Path:
        """Return what the services share: jobs and code."""
        return self.home / "data"

    @property
    def redis(self) -> Path:
        return self.home / "redis"

    @property
    def logs(self) -> Path:
        return self.home / "services"

    @property
    def work(self) -> Path:
        """The folders of the workers, one for each node."""
        return self.home / "work"

    @property
    def tls(self) -> Path:
        """Certificate and key of a Redis server that other machines reach."""
        return self.home / "tls"

    @property
    def secrets(self) -> Path:
        """The passwords of the services on such a server."""
        return self.home / "secrets"

    @property
    def agent_secret(self) -> Path:
        return self.secrets / Role.AGENT / "secret"

    @property
    def folders(self) -> tuple[Path, ...]:
        """All of them: what is in them is of no use to jobs."""
        return self.root, self.redis, self.logs, self.work

    @property
    def closed(self) -> tuple[Path, ...]:
        """Return what no job may name."""
        return *self.folders, self.tls, self.secrets

    def create(self) -> None:
        """Create the folders, accessible only to this user."""
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in self.folders:
            folder.mkdir(mode=0o700, exist_ok=True)


def redis_service(server: RedisServer, *, may_forget: bool = False, locks: tuple[int, ...] = ()) -> Service:
    """The Redis server, which is stopped last: the others need it until they have ended.

    Args:
        may_forget: nobody reads its data again, so it needs no time to end; it heeds a signal twice a second only.
        locks: descriptors of locks on its folders, which it holds until it has ended, even if its owner ends before it.
    """
    return Service(
        name=REDIS,
        command=server.command(),
        # Newer servers refuse to start with a locale that the machine doesn't have.
        environment={**_clean(os.environ), "LC_ALL": "C"},
        stage=1,
        stop_s=0.0 if may_forget else Service.stop_s,
        fds=locks,
    )


def cluster_services(
    layout: ClusterLayout,
    *,
    redis_url: str,
    port: int,
    token: str,
    nodes: int,
    slots: int,
    jobs: int = 1,
    may_forget: bool = False,
    assets: Path | None = None,
    preload: Sequence[str] = (),
    redis_secrets: Mapping[Role, str] | None = None,
) -> list[Service]:
    """API, master, concatenator, and an agent for each node: `node1`, `node2`, …

    Args:
        assets: the root folder of the models that scripts find by name; None: that of the cluster.
        preload: the modules that workers of the first job begin with.
        redis_secrets: the password of each role on Redis; None: the URL has all that it takes.
    """
    leaders = str(jobs + 1)  # a spare one, ready when another stops answering
    shared = _shared_environment(layout, redis_url, may_forget=may_forget)

    def environment(role: Role) -> dict[str, str]:
        # In the environment, not among the arguments, which everybody on the machine can read.
        secrets_setting = {} if role is Role.API else secret_sources.inherited_setting(os.environ)
        return {
            **shared,
            **secrets_setting,
            **({"PARALLELRUN_REDIS_SECRET": redis_secrets[role]} if redis_secrets else {}),
        }

    agent = {**environment(Role.AGENT), **({"PARALLELRUN_ASSETS_ROOT": str(assets)} if assets else {})}
    agents = [_agent(layout, node, slots, agent, preload) for node in node_names(nodes)]
    return [
        _api(layout, port, token, environment(Role.API)),
        _python(
            "master",
            *("parallelrun_master.main", "--leaders", leaders),
            # Whoever submits jobs may reach whatever this machine reaches.
            environment={**environment(Role.MASTER), "PARALLELRUN_NOTIFY_ALLOW": "*"},
            nice=_LEADERS_NICE,
        ),
        *agents,
        _python("concatenator", "parallelrun_concatenator.main", environment=environment(Role.CONCATENATOR)),
    ]


def _shared_environment(layout: ClusterLayout, redis_url: str, *, may_forget: bool) -> dict[str, str]:
    return {
        "PARALLELRUN_LOG_FORMAT": "text",  # on a single machine, people read the logs
        **_clean(os.environ),
        **_absolute(os.environ, SITE),
        "PARALLELRUN_REDIS_URL": redis_url,
        "PARALLELRUN_ROOT": str(layout.root),
        **({"PARALLELRUN_ALLOW_VOLATILE_REDIS": "true"} if may_forget else {}),
    }


def _api(layout: ClusterLayout, port: int, token: str, environment: Mapping[str, str]) -> Service:
    folder_of_secrets = filter(secret_sources.is_local_folder, secret_sources.inherited_setting(os.environ).values())
    return _python(
        "api",
        *("parallelrun_api.main", "--host", "127.0.0.1", "--port", str(port)),
        environment={
            **environment,
            "PARALLELRUN_TOKEN": token,
            "PARALLELRUN_ALLOWED_ROOTS": ":".join(EVERYWHERE),  # it is the user's own machine
            "PARALLELRUN_CLOSED_FOLDERS": ":".join([*map(str, layout.closed), *folder_of_secrets]),
            "PARALLELRUN_AUDIT_LOG": str(layout.logs / "audit.log"),
        },
    )


def _agent(
    layout: ClusterLayout, node: str, slots: int, environment: Mapping[str, str], preload: Sequence[str]
) -> Service:
    return _python(
        node,
        "parallelrun_agent.main",
        *("--node", node),
        *("--slots", str(slots)),
        *("--work-dir", str(layout.work / node)),
        *("--grace-seconds", str(_AGENT_GRACE_S)),
        *(("--preload", " ".join(preload)) if preload else ()),
        environment={
            **environment,
            **{name: value for name, value in os.environ.items() if name.startswith(_SECRET)},
            "PARALLELRUN_PASS_CREDENTIALS": "true",  # scripts run as their user, with this user's own
        },
    )


def provisioner_service(
    layout: ClusterLayout, *, redis_url: str, node_redis_url: str, redis_secrets: Mapping[Role, str]
) -> Service:
    """Return who asks engines for the nodes of computes.

    Args:
        node_redis_url: Redis as nodes of other machines reach it; empty: they can't.
        redis_secrets: the password of each role on Redis; empty: the URL has all that it takes.
    """
    from parallelrun_core.computes.kinds import MANUAL, kinds

    engines = [kind for kind in kinds() if kind != MANUAL]
    of_engines = tuple(f"{_PREFIX}{kind.upper()}_" for kind in engines)
    secrets = {
        "PARALLELRUN_REDIS_SECRET": redis_secrets.get(Role.PROVISIONER, ""),
        "PARALLELRUN_AGENT_SECRET": redis_secrets.get(Role.AGENT, ""),
    }
    return _python(
        "provisioner",
        "parallelrun_provisioner.main",
        environment={
            "PARALLELRUN_LOG_FORMAT": "text",
            **_clean(os.environ),
            **{name: value for name, value in os.environ.items() if name.startswith(of_engines)},
            **{name: secret for name, secret in secrets.items() if secret},
            "PARALLELRUN_REDIS_URL": redis_url,
            "PARALLELRUN_ROOT": str(layout.root),
            "PARALLELRUN_NODE_REDIS_URL": node_redis_url,
            "PARALLELRUN_RELEASE_ON_STOP": "true",
            # It is this user who defines the computes of a cluster of their own.
            _KINDS: os.environ.get(_KINDS) or ",".join(engines),
        },
        stop_s=_RELEASE_S,
    )


def node_names(nodes: int) -> list[str]:
    return [f"node{number}" for number in range(1, nodes + 1)]


def is_passed_on(variable: str) -> bool:
    """Return whether the services of an embedded cluster take this variable from the user's environment."""
    return any(fnmatchcase(variable, pattern) for pattern in _PASSED_ON)


def usable_cpus() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0))


def _python(
    name: str, *module: str, environment: dict[str, str], nice: int = 0, stop_s: float = Service.stop_s
) -> Service:
    """Return a service that is a module with arguments."""
    # -P: a file such as `redis.py` in the user's current folder must not be imported.
    command = (sys.executable, "-P", "-m", "parallelrun_core.service.launch", *module)
    return Service(name=name, command=command, module=module, environment=environment, nice=nice, stop_s=stop_s)


def _absolute(environment: Mapping[str, str], name: str) -> dict[str, str]:
    """Return a variable with a path, if there is one, as services need it: they have another current folder."""
    path = environment.get(name)
    return {name: os.path.abspath(path)} if path else {}


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(_PREFIX) or is_passed_on(name)}
