"""Is this Redis one that jobs can be trusted to? Every service looks at it once, when it starts, and so does the client
before it starts services on a server that somebody else runs.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import redis

from parallelrun_core.store import OLDEST_REDIS
from parallelrun_core.store.connection import CONNECTION_ERRORS, connect
from parallelrun_core.telemetry import logger

if TYPE_CHECKING:
    from redis import Redis

    from parallelrun_core.settings import ServiceSettings

log = logger()

EXIT_UNFIT: Final = 3
"""Exit code of a service that was pointed at a Redis which isn't fit."""
_LONGEST_PAUSE_S: Final = 1.0


class UnfitRedis(Exception):
    """This Redis would lose jobs or can't run the scripts."""


def wait_for_fit_redis(settings: ServiceSettings) -> None:
    """Return once Redis is there and fit for use; end this process when it is there and isn't fit."""
    pause_s = 0.05
    with connect(settings.redis_url) as client:
        while True:
            try:
                check(client, may_forget=settings.allow_volatile_redis)
                return
            except CONNECTION_ERRORS as error:
                log.warning("redis_awaited", error=str(error))
            except UnfitRedis as error:
                log.error("redis_unfit", error=str(error))
                raise SystemExit(EXIT_UNFIT) from None
            time.sleep(pause_s)  # there is no event for a server that comes up
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def check(client: Redis, *, may_forget: bool) -> str:
    """See to it that a server is fit, going by its own description (INFO); returns its version.

    Args:
        may_forget: it may be one that loses everything when it restarts.

    Raises:
        UnfitRedis: it isn't.
        RedisError: it is away, if this is one of `CONNECTION_ERRORS`.
    """
    try:
        info: Any = client.info()
    except redis.exceptions.NoPermissionError:
        raise UnfitRedis("INFO is not permitted, and nothing else says whether the server was restarted") from None
    problems = unfit(info, may_forget=may_forget)
    if problems:
        raise UnfitRedis("; ".join(problems))
    return str(info.get("valkey_version") or info["redis_version"])


def unfit(info: dict[str, Any], *, may_forget: bool) -> list[str]:
    """What speaks against a server."""
    problems = []
    version = str(info.get("redis_version", ""))
    if _numbers(version) < OLDEST_REDIS:
        problems.append(f"Redis {version or 'of an unknown version'} is too old: 6.2 is needed, or any Valkey")
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        problems.append(f"maxmemory-policy is {policy}, under which mini-batches vanish: noeviction is needed")
    if not may_forget and not int(info.get("aof_enabled", 0)):
        problems.append(
            "the append-only file is off, so a restart would forget jobs: set 'appendonly yes' (or start every"
            " service with --allow-volatile-redis)"
        )
    return problems


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
