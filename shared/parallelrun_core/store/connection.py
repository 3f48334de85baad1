"""The one way to connect to Redis, and to see that it was restarted.

Errors are not hidden by silent retries: each role has a loop that must know when Redis was away, because a
server that came back may have forgotten the last second (AOF `everysec`), and then that role has to report
again what it holds.

Outside of the store, nobody calls a command of Redis or knows a key: others pass a client on, to what the store has
for them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote_plus, urlsplit

from redis import Redis
from redis.backoff import NoBackoff
from redis.connection import DefaultParser
from redis.retry import Retry

from parallelrun_core.store.errors import CONNECTION_ERRORS, RedisError, ServerReplaced, ServerUnable, TellingParser
from parallelrun_core.store.fast_path import DirectClient

if TYPE_CHECKING:
    from redis.asyncio import Redis as AsyncRedis  # noqa: TC004 -- for others' types only

__all__ = [
    "CONNECTION_ERRORS", "AsyncRedis", "DirectClient", "Redis", "RedisError", "ServerReplaced", "ServerUnable",
    "connect", "connect_async", "connect_directly", "server_run_id", "without_password",
]  # fmt: skip


class _Parser(TellingParser, DefaultParser):  # type: ignore[misc,valid-type]  # redis-py chooses it when it is imported
    """The parser of all connections that block."""


def connect(url: str, *, timeout_s: float = 5.0) -> Redis:
    """A client that raises one of `CONNECTION_ERRORS` at once when the server is away.

    Args:
        url: redis://, rediss:// or unix://.
        timeout_s: of connecting, and of each answer.

    Raises:
        ValueError: the URL has no scheme that redis-py knows.
    """
    return Redis.from_url(url, parser_class=_Parser, **_settings(url, timeout_s), retry=Retry(NoBackoff(), 0))


def connect_directly(url: str, *, timeout_s: float = 5.0) -> DirectClient:
    """Connect with a single connection instead of a pool: faster, for a process that asks from one thread.

    Raises:
        ValueError: the URL has no scheme that redis-py knows.
        RedisError: one of `CONNECTION_ERRORS` when the server is away.
    """
    client = DirectClient.from_url(
        url,
        parser_class=_Parser,
        **_settings(url, timeout_s),
        retry=Retry(NoBackoff(), 0),
        single_connection_client=True,
    )
    return cast(DirectClient, client)  # redis-py's annotation names its own class


def connect_async(url: str, *, timeout_s: float, connections: int) -> AsyncRedis:
    """A client for an event loop, which raises the same errors at once, and waits for one of its connections.

    Raises:
        ValueError: the URL has no scheme that redis-py knows.
    """
    # Only the API pays for these imports.
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.connection import DefaultParser
    from redis.asyncio.retry import Retry

    class Parser(TellingParser, DefaultParser):  # type: ignore[misc,valid-type]
        """The parser of all connections of an event loop."""

    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=connections,
        timeout=timeout_s,
        parser_class=Parser,
        retry=Retry(NoBackoff(), 0),
        # Connections through a unix socket don't know this one.
        **({} if url.startswith("unix:") else {"socket_keepalive": True}),
        **_settings(url, timeout_s),
    )
    return Redis.from_pool(pool)


def _settings(url: str, timeout_s: float) -> dict[str, Any]:
    # What a server sends first by TLS looks like an answer that nobody has asked for, unless something is asked.
    must_ask = url.startswith("rediss:") and "@" not in urlsplit(url).netloc
    return {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "health_check_interval": 0,
        "protocol": 2,
        # Each connection would look up the library's version, and tell the server in two more round trips.
        **({} if must_ask else {"driver_info": None}),
    }


def server_run_id(client: Redis) -> str:
    """The id that Redis draws at every start."""
    info: dict[str, Any] = client.info("server")
    return str(info["run_id"])


def without_password(url: str) -> str:
    """The URL in a form that is safe to log."""
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    if colon and at:
        url = url.replace(f"//{parts.netloc}", f"//{user}:***@{host}", 1)
    return re.sub(r"([?&][^=&]*=)[^&]*", _without_value, url)


def _without_value(parameter: re.Match[str]) -> str:
    """Return a parameter of a URL, without its value if that is a password (`ssl_password` is that of a key)."""
    return f"{parameter[1]}***" if "password" in unquote_plus(parameter[1]).lower() else parameter[0]
