"""Decides which connections may stay.

Anybody can open connections and say nothing, or say it slowly, and each one costs a descriptor and some memory. So a
connection stays while it gets on: its request comes within a time, then the body and the answer move. When there are
as many as may be, those that wait for a request make room, the oldest first, and those of clients that have shown a
token last. A new client therefore always gets in, as long as it says at once what it wants; a limit for each address
would do less, because behind a proxy all clients have the same one.
"""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

MAX_HEAD_BYTES: Final = 32 << 10
"""The longest head of a request."""
LEAST_BYTES_PER_S: Final = 500
"""The slowest upload that counts as one."""
_READERS_MAY_STALL: Final = 3
"""A client that reads nothing is given this many times what one gets that sends nothing."""
_OWN: Final = 192
"""Open files that have nothing to do with clients: Redis, threads, uploads on their way."""
_FOR_EACH: Final = 2
"""A connection, and the file that is downloaded through it."""


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """The limits on connections: how many there may be, and how slow they may be."""

    most: int = 3000
    head_s: float = 10.0
    """Seconds within which the head of a request must be here, from its first byte or from the connection's begin."""
    stall_s: float = 20.0
    """Seconds after which an upload that hardly moves is ended."""


class Moved(NamedTuple):
    """The progress of a connection, and what it waits for."""

    received: int
    is_owed: bool
    """The rest of the request's body is awaited."""
    drained: int
    """Number of times that all was sent that was to be sent."""
    unsent: int
    """Bytes that the client doesn't read; 0 if they are few."""


class Peer(Protocol):
    def moved(self) -> Moved:
        """Return what it has moved so far."""
        ...

    def end(self, *, late: bool) -> None:
        """Close it at once; `late`: the client is told that its request took too long."""
        ...


class Connections:
    """All connections of a server. For one thread; `sweep` is to be called every second or so."""

    def __init__(self, limits: ConnectionLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.ended: Counter[str] = Counter()
        """How many were ended by the server, by reason."""
        self._clock = clock
        self._full = limits.most - max(4, limits.most // 16)
        # In the order in which they began to wait: the first is the one that has waited longest.
        self._strangers: dict[Peer, float] = {}
        self._callers: dict[Peer, float] = {}
        self._busy: dict[Peer, tuple[float, Moved] | None] = {}

    def __len__(self) -> int:
        return len(self._strangers) + len(self._callers) + len(self._busy)

    @property
    def is_crowded(self) -> bool:
        """Return whether so many requests are being answered that the rest is kept for health and control."""
        return len(self._busy) > self._full

    def opened(self, peer: Peer) -> None:
        """Take up a new connection: another one that waits is ended for it if there are too many, or else itself."""
        self._strangers[peer] = self._clock()
        if len(self) <= self.limits.most:
            return
        for waiting in (self._strangers, self._callers):
            oldest = next(iter(waiting), peer)
            if oldest is not peer:
                self._end(oldest, "crowded")
                return
        self._end(peer, "full")

    def waits(self, peer: Peer, *, is_known: bool) -> None:
        """Note that it waits for a request from now on; `is_known`: its client has shown a token."""
        self.closed(peer)
        (self._callers if is_known else self._strangers)[peer] = self._clock()

    def works(self, peer: Peer) -> None:
        """Note that its request is being answered."""
        if peer not in self._busy:
            self.closed(peer)
            self._busy[peer] = None

    def closed(self, peer: Peer) -> None:
        self._strangers.pop(peer, None)
        self._callers.pop(peer, None)
        self._busy.pop(peer, None)

    def sweep(self) -> None:
        """End all that take too long."""
        now = self._clock()
        for waiting in (self._strangers, self._callers):
            while waiting:
                peer, since = next(iter(waiting.items()))
                if now - since < self.limits.head_s:
                    break
                self._end(peer, "head", late=True)
        for peer, before in list(self._busy.items()):
            if before is None:
                self._busy[peer] = (now, peer.moved())
            elif now - before[0] >= self.limits.stall_s:
                self._check(peer, before, now)

    def _check(self, peer: Peer, before: tuple[float, Moved], now: float) -> None:
        since, then = before
        moved = peer.moved()
        is_slow = moved.received - then.received < LEAST_BYTES_PER_S * (now - since)
        if then.is_owed and moved.is_owed and is_slow:
            self._end(peer, "body", late=True)
        elif (then.unsent, then.drained) == (moved.unsent, moved.drained) and moved.unsent:
            if now - since >= _READERS_MAY_STALL * self.limits.stall_s:
                self._end(peer, "reader")
        else:
            self._busy[peer] = (now, moved)

    def _end(self, peer: Peer, reason: str, *, late: bool = False) -> None:
        self.closed(peer)
        self.ended[reason] += 1
        peer.end(late=late)


def raise_limit() -> None:
    """Let the process open as many files as it may; a soft limit of 1,024 is there for programs that call `select`."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # a sandbox may forbid it
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_connections(requested: int) -> int:
    """Return this number of connections, or the number that the limit on open files leaves room for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return requested
    return min(requested, max(16, (soft - _OWN) // _FOR_EACH))
