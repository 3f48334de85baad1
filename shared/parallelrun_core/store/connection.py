"""One way to connect to Redis, and one way to see that it was restarted.

Errors are not hidden by silent retries: each role has a loop that must know when Redis was away, because a
server that came back may have forgotten the last second (AOF `everysec`), and then that role has to say
again what it holds.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

CONNECTION_ERRORS: Final = (redis.ConnectionError, redis.TimeoutError, redis.exceptions.BusyLoadingError)


def connect(url: str, *, timeout_s: float = 5.0, one_connection: bool = False) -> redis.Redis:
    """A client that raises one of `CONNECTION_ERRORS` at once when the server is away.

    Args:
        url: redis://, rediss:// or unix://.
        timeout_s: of connecting, and of each answer.
        one_connection: keep a single connection and no pool: quicker, for a process that asks from one thread.

    Raises:
        ValueError: the URL has no scheme that redis-py knows.
    """
    return redis.Redis.from_url(
        url,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        health_check_interval=0,
        protocol=2,
        retry=Retry(NoBackoff(), 0),
        single_connection_client=one_connection,
    )


def server_run_id(client: redis.Redis) -> str:
    """The id that Redis draws at every start."""
    info: dict[str, Any] = client.info("server")
    return str(info["run_id"])


def without_password(url: str) -> str:
    """The URL as it may stand in a log."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", ":***@")))
