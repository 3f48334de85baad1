"""The one way to connect to Redis, and to see that it was restarted.

Errors are not hidden by silent retries: each role has a loop that must know when Redis was away, because a
server that came back may have forgotten the last second (AOF `everysec`), and then that role has to report
again what it holds.

A server may also be up and unable to write: memory or disk is full, it has become a replica, its replicas are gone.
For a caller this is the same as being away, so it is the same kind of error (`ServerUnable`).
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import redis
from redis._parsers import _HiredisParser
from redis._parsers.hiredis import NOT_ENOUGH_DATA
from redis.backoff import NoBackoff
from redis.retry import Retry

CONNECTION_ERRORS: Final = (redis.ConnectionError, redis.TimeoutError)
"""Redis is away or unable to work for now: try again later. Any other error of redis-py is a bug."""

# Redis 6.2 wraps an error from inside a script: "ERR Error running script (…): -OOM command not allowed".
_UNABLE: Final = re.compile(
    r"(?:^|-)(?:BUSY|CLUSTERDOWN|MASTERDOWN|MISCONF|NOREPLICAS|OOM|READONLY|TRYAGAIN|UNBLOCKED)\b"
)


class ServerUnable(redis.ConnectionError):
    """The server answers, but can't do this for now; nothing was changed."""


class ServerReplaced(redis.ConnectionError):
    """The server isn't the one that it was: it was restarted, or another one has taken its place."""


class _Parser(_HiredisParser):
    """Distinguishes errors that pass by themselves from bugs."""

    @classmethod
    def parse_error(cls, response: str) -> Exception:
        if _UNABLE.search(response):
            return ServerUnable(response)
        found: Exception = super().parse_error(response)  # type: ignore[no-untyped-call]
        return found

    def ask(self, command: bytes) -> Any:
        """Send a packed command; returns the server's answer, which may be an exception.

        Raises:
            OSError: the connection is broken, or no answer came in time.
        """
        sock: Any = self._sock
        reader: Any = self._reader
        sock.sendall(command)
        while (answer := reader.gets()) is NOT_ENOUGH_DATA:
            size = sock.recv_into(self._buffer)
            if not size:
                raise ConnectionResetError("the server has closed the connection")
            reader.feed(self._buffer, 0, size)
        return answer


def connect(url: str, *, timeout_s: float = 5.0, one_connection: bool = False) -> redis.Redis:
    """A client that raises one of `CONNECTION_ERRORS` at once when the server is away.

    Args:
        url: redis://, rediss:// or unix://.
        timeout_s: of connecting, and of each answer.
        one_connection: use a single connection instead of a pool: faster, for a process that asks from one thread.

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


def ask(client: redis.Redis, command: bytes) -> Any:
    """The server's answer to a packed command; for a client with `one_connection`.

    Does the same as redis-py, and raises the same, without its layers for pools, pushed messages and metrics: for an
    agent that asks thousands of times each second, with cold caches, they take as long as the rest of the call.
    """
    connection: Any = client.connection
    if not connection.is_connected:
        connection.connect()
    try:
        answer = connection._parser.ask(command)
        if isinstance(answer, redis.ConnectionError):
            raise answer
    except BaseException as error:
        connection.disconnect()  # or its answer would be taken for that of the next command
        if isinstance(error, TimeoutError):
            raise redis.TimeoutError("Redis has not answered in time") from error
        if isinstance(error, OSError) and not isinstance(error, redis.RedisError):
            raise redis.ConnectionError(f"the connection to Redis is broken: {error}") from error
        raise
    if isinstance(answer, Exception):
        raise answer
    return answer


def limit_wait(client: redis.Redis, timeout_s: float) -> None:
    """From now on, wait at most this long for an answer; for a client with `one_connection`."""
    connection: Any = client.connection
    connection.set_tmp_settings(tmp_relaxed_timeout=timeout_s)  # for when it has to connect again
    connection.update_current_socket_timeout(timeout_s)


def server_run_id(client: redis.Redis) -> str:
    """The id that Redis draws at every start."""
    info: dict[str, Any] = client.info("server")
    return str(info["run_id"])


def without_password(url: str) -> str:
    """The URL in a form that is safe to log."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", ":***@")))
