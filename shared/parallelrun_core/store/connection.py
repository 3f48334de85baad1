"""One way to connect to Redis, and one way to see that it was restarted.

Errors are not hidden by silent retries: each role has a loop that must know when Redis was away, because a
server that came back may have forgotten the last second (AOF `everysec`), and then that role has to say
again what it holds.

A server may also be there and unable to write: memory or disk is full, it has become a replica, its replicas are gone.
For whoever asks this is the same as being away, so it is the same kind of error (`ServerUnable`).
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import redis
from redis._parsers import _HiredisParser
from redis.backoff import NoBackoff
from redis.retry import Retry

CONNECTION_ERRORS: Final = (redis.ConnectionError, redis.TimeoutError)
"""Redis is away for now, or can't do what it is for: try again later. Any other error of redis-py is a bug."""

# Redis 6.2 wraps an error that was met inside a script: "ERR Error running script (…): -OOM command not allowed".
_UNABLE: Final = re.compile(
    r"(?:^|-)(?:BUSY|CLUSTERDOWN|MASTERDOWN|MISCONF|NOREPLICAS|OOM|READONLY|TRYAGAIN|UNBLOCKED)\b"
)


class ServerUnable(redis.ConnectionError):
    """The server answers, and can't do this for now; nothing was changed."""


class _Parser(_HiredisParser):
    """Tells errors that pass by themselves from those that are bugs."""

    @classmethod
    def parse_error(cls, response: str) -> Exception:
        if _UNABLE.search(response):
            return ServerUnable(response)
        found: Exception = super().parse_error(response)  # type: ignore[no-untyped-call]
        return found


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
        parser_class=_Parser,
        protocol=2,
        retry=Retry(NoBackoff(), 0),
        single_connection_client=one_connection,
    )


def limit_wait(client: redis.Redis, timeout_s: float) -> None:
    """From now on, wait so long for an answer at most; for a client with `one_connection`."""
    connection: Any = client.connection
    connection.set_tmp_settings(tmp_relaxed_timeout=timeout_s)  # for when it has to connect anew
    connection.update_current_socket_timeout(timeout_s)


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
