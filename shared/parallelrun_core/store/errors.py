"""Errors of calls to Redis, sorted by what a caller can do about them.

A server may be up and unable to write: memory or disk is full, it has become a replica, its replicas are gone. For a
caller this is the same as being away, so it is the same kind of error (`ServerUnable`).
"""

from __future__ import annotations

import re
from typing import Any, Final

import redis
from redis import RedisError
from redis.exceptions import NoPermissionError

__all__ = ["CONNECTION_ERRORS", "NoPermissionError", "RedisError", "ServerReplaced", "ServerUnable", "TellingParser"]

CONNECTION_ERRORS: Final = (redis.ConnectionError, redis.TimeoutError)
"""Redis is away or unable to work for now: try again later. Any other `RedisError` is a bug."""

# Redis 6.2 wraps an error from inside a script: "ERR Error running script (…): -OOM command not allowed".
_UNABLE: Final = re.compile(
    r"(?:^|-)(?:BUSY|CLUSTERDOWN|LOADING|MASTERDOWN|MISCONF|NOREPLICAS|OOM|READONLY|TRYAGAIN|UNBLOCKED)\b"
)


class ServerUnable(redis.ConnectionError):
    """The server answers, but can't do this for now; nothing was changed."""


class ServerReplaced(redis.ConnectionError):
    """The server isn't the one that it was: it was restarted, or another one has taken its place."""


class TellingParser:
    """Distinguishes errors that pass by themselves from bugs; for any parser of redis-py, in front of it."""

    @classmethod
    def parse_error(cls, response: str) -> Exception:
        """The error that the server's words stand for."""
        if _UNABLE.search(response):
            return ServerUnable(response)
        parser: Any = super()
        error: Exception = parser.parse_error(response)
        return error
