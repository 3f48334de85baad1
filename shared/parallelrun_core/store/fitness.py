"""Is this Redis fit to keep jobs? Every service checks once, when it starts, and so does the client before it starts
services on a server that somebody else runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import redis

from parallelrun_core.service.pacing import Backoff
from parallelrun_core.service.telemetry import logger
from parallelrun_core.store import OLDEST_REDIS
from parallelrun_core.store.connection import CONNECTION_ERRORS, connect
from parallelrun_core.store.roles import Role, scripts_of

if TYPE_CHECKING:
    from redis import Redis

    from parallelrun_core.hosting.settings import ServiceSettings

log = logger()

EXIT_UNFIT: Final = 3
"""Exit code of a service whose Redis isn't fit."""
EXIT_ALONE: Final = 4
"""Exit code of a node to which Redis hasn't answered for as long as it may be alone."""


class UnfitRedis(Exception):
    """This Redis would lose jobs or can't run the scripts."""


def wait_for_fit_redis(settings: ServiceSettings, *, most_s: float = 0.0) -> None:
    """Return once Redis is up and fit for use; end this process when it is up and isn't fit, or doesn't come in time.

    Args:
        most_s: for how long it is awaited; 0: for ever.
    """
    began = time.monotonic()
    with connect(settings.redis_login) as client:
        try:
            pauses = pauses_until_fit(client, may_forget=settings.allow_volatile_redis, role=settings.redis_user)
            for pause_s in pauses:
                if 0 < most_s <= time.monotonic() - began:
                    log.error("left_alone", seconds=most_s)
                    raise SystemExit(EXIT_ALONE)
                time.sleep(pause_s)
        except UnfitRedis as error:
            log.error("redis_unfit", error=str(error))
            raise SystemExit(EXIT_UNFIT) from None


def pauses_until_fit(client: Redis, *, may_forget: bool, role: str = "") -> Iterator[float]:
    """Check a server again and again until it is up; yields how long to pause in between, s.

    Args:
        may_forget, role: as for `check`.

    Raises:
        UnfitRedis: it is up, and not fit (see `check`).
    """
    backoff = Backoff(0.05, 1.0)
    while True:
        try:
            version = check(client, may_forget=may_forget, role=role)
        except CONNECTION_ERRORS as error:
            log.warning("redis_awaited", error=str(error))
            yield backoff.next_s()
        else:
            log.info("redis_ready", version=version)
            return


def check(client: Redis, *, may_forget: bool, role: str = "") -> str:
    """Make sure that a server is fit, by its own description (INFO); returns its version.

    Args:
        may_forget: it may lose everything when it restarts.
        role: of the service that asks, which must be allowed to run its scripts.

    Raises:
        UnfitRedis: it isn't.
        RedisError: one of `CONNECTION_ERRORS` when it is away.
    """
    try:
        info: Any = client.info()
    except redis.exceptions.NoPermissionError:
        raise UnfitRedis("INFO is not permitted, and nothing else says whether the server was restarted") from None
    problems = unfit(info, may_forget=may_forget)
    if role and (denied := _denied(client, Role(role))):
        problems.append(
            f"the user of this service may not run the scripts of this release ({', '.join(denied)}): print the users"
            " anew with 'parallelrun redis-acl', and load them"
        )
    if problems:
        raise UnfitRedis("; ".join(problems))
    return str(info.get("valkey_version") or info["redis_version"])


def _denied(client: Redis, role: Role) -> list[str]:
    """The scripts of a role that it may not run. Those that it may run fail before they do anything: without keys."""
    named = scripts_of(role)
    with client.pipeline(transaction=False) as pipe:
        for sha in named.values():
            pipe.evalsha(sha, 0)
        answers = pipe.execute(raise_on_error=False)
    refused = redis.exceptions.NoPermissionError
    return [name for name, answer in zip(named, answers, strict=True) if isinstance(answer, refused)]


def unfit(info: dict[str, Any], *, may_forget: bool) -> list[str]:
    """The reasons why a server isn't fit."""
    problems = []
    version = str(info.get("redis_version", ""))
    if _numbers(version) < OLDEST_REDIS:
        problems.append(
            f"Redis {version or 'of an unknown version'} is too old: it must be 6.2 or later, or any Valkey"
        )
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        problems.append(f"maxmemory-policy is {policy}, under which mini-batches vanish: it must be noeviction")
    if not may_forget and not int(info.get("aof_enabled", 0)):
        problems.append(
            "the append-only file is off, so a restart would forget jobs: set 'appendonly yes' (or start every"
            " service with --allow-volatile-redis)"
        )
    return problems


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
