"""Watches a queue for an entry that waits, beside other events."""

from __future__ import annotations

import time
from select import select
from typing import TYPE_CHECKING, Any, Final

from parallelrun_core.store.errors import CONNECTION_ERRORS
from parallelrun_core.store.fast_path import socket_of

if TYPE_CHECKING:
    from redis import Redis

_LISTEN_S: Final = 5
_LATE_S: Final = 2.0


class QueueWatch:
    """An answer of Redis that is due once an entry waits in a queue, where it stays. For one thread.

    Args:
        redis: a client of which this takes a connection.
        key: that of the queue.
    """

    def __init__(self, redis: Redis, key: str) -> None:
        self._redis = redis
        self._key = key
        self._connection: Any = None
        self._asked_at: float | None = None
        """On the monotonic clock; None: no answer is due."""

    def ask(self) -> list[int]:
        """Ask Redis, if no answer is due; returns the descriptor that is readable once it is there.

        Empty: nobody can wait for it, as Redis is away or redis-py doesn't show its socket.
        """
        if self._connection is None:
            self._connection = self._redis.connection_pool.make_connection()
        if self._asked_at is None:
            try:
                # The first entry takes its own place again: so this ends when there is one, and nobody loses it.
                self._connection.send_command("BLMOVE", self._key, self._key, "LEFT", "LEFT", _LISTEN_S)
            except CONNECTION_ERRORS:
                return []
            self._asked_at = time.monotonic()
        socket = socket_of(self._connection)
        return [] if socket is None else [socket.fileno()]

    def has_entry(self) -> bool:
        """Return whether an entry waits, or this can't be told."""
        fds = self.ask()
        if self._asked_at is None or not fds:
            return True
        if not select(fds, [], [], 0)[0]:
            is_late = time.monotonic() - self._asked_at > _LISTEN_S + _LATE_S
            if is_late:  # the connection is dead
                self._connection.disconnect()
                self._asked_at = None
            return is_late
        self._asked_at = None
        try:
            if self._connection.read_response() is None:
                return False
            return bool(self._redis.lrange(self._key, 0, 0))  # another one may have taken it since
        except CONNECTION_ERRORS:
            return True
