"""The thread in which an agent answers its workers' requests for permits.

Each worker of a job with `rate_limits` has a socket for them, whose messages are lines of JSON
(`worker/script_api/permits.py`). A worker that dies closes it, and gives back what it held. While Redis is away nobody
gets a permit.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from parallelrun_agent.permits.queue import PermitQueue, WaitingCall
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.limits.definition import Limit, limit_catalog
from parallelrun_core.service.telemetry import logger
from parallelrun_core.service.threads import started_thread
from parallelrun_core.store.connection import CONNECTION_ERRORS, RedisError, connect
from parallelrun_core.store.permits import Call, Party, Permits

if TYPE_CHECKING:
    from redis import Redis

log = logger()

_IDLE_S: Final = 5.0
_AGAIN_S: Final = 1.0
_KNOWN_S: Final = 2.0
"""How long the definition of a limit is taken to be as it was read."""
_MOST_LINE: Final = 4096
_MOST_TOKENS: Final = 10**12
"""Of one call, as workers ask for no more."""
_MOST_PAUSE_S: Final = 3600.0
_QueueKey: TypeAlias = tuple[str, str]
"""A limit, and a job that asks for its permits here."""


class _Connection:
    """A worker's end, as far as the thread knows it."""

    def __init__(self, end: socket.socket, limits: frozenset[str], job_id: str, name: str) -> None:
        self.end = end
        self.limits = limits
        self.job_id = job_id
        self.name = name
        self.received = b""


class PermitServer:
    """The permits of one node. `open` may be called in any thread, everything else runs in the server's own.

    Args:
        root: of the cluster, with the definitions of its limits.
        url: of Redis.
        node: begins the names of the permits that are held here.
    """

    def __init__(self, root: Path, url: str, node: str) -> None:
        self._limits = limit_catalog(root)
        self._url = url
        self._node = node
        self._new: list[_Connection] = []
        self._known: dict[str, tuple[Limit, float]] = {}
        self._queues: defaultdict[_QueueKey, PermitQueue] = defaultdict(PermitQueue)
        self._thread: threading.Thread | None = None
        self._wake_end = -1
        self._opened = 0

    def open(self, limits: tuple[str, ...], job_id: str, process: str) -> int:
        """Return the descriptor that a worker inherits, of a new connection for permits of these limits.

        Raises:
            OSError: it can't be opened for now.
        """
        if self._thread is None:
            self._start()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._opened += 1
        name = f"{self._node}/{job_id}/{process}/{os.getpid()}-{self._opened}"
        self._new.append(_Connection(ours, frozenset(limits), job_id, name))
        os.write(self._wake_end, b"\1")
        return theirs.detach()

    def _start(self) -> None:
        wake, self._wake_end = os.pipe()
        try:
            self._thread = started_thread("permits", self._run, wake)
        except OSError:
            os.close(wake)
            os.close(self._wake_end)
            raise

    def _run(self, wake: int) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(wake, selectors.EVENT_READ)
            redis = connect(self._url)
            self._permits = Permits(redis)
            while True:
                wake_at = min((queue.wake_at() for queue in self._queues.values()), default=float("inf"))
                for key, _ in selector.select(max(0.0, min(_IDLE_S, wake_at - time.monotonic()))):
                    if key.data is None:
                        os.read(wake, 64)
                        for connection in [self._new.pop() for _ in range(len(self._new))]:
                            selector.register(connection.end, selectors.EVENT_READ, connection)
                    elif not self._read(key.data):
                        selector.unregister(key.data.end)
                        key.data.end.close()
                self._serve(redis)

    def _serve(self, redis: Redis) -> None:
        for (name, job_id), queue in self._queues.items():
            for waiting in queue.due(time.monotonic()):
                self._answer(waiting, {})
            limit = self._limit(name)
            if limit is None:
                for waiting in queue.refuse():
                    self._answer(waiting, {"error": f"there is no limit {name!r} any more"})
                continue
            self._ask_redis(name, partial(self._ask, limit, job_id, queue))

    def _ask(self, limit: Limit, job_id: str, queue: PermitQueue) -> None:
        now = time.monotonic()
        if holders := queue.to_keep(now):
            self._permits.keep(limit.name, holders)
        if calls := queue.next_calls(now):
            granted = self._permits.take(limit, Party(job_id, self._node, *queue.counts), calls)
            queue.grant(granted.starts_s, granted.wait_s, now)
            for waiting in queue.due(time.monotonic()):
                self._answer(waiting, {})

    def _ask_redis(self, name: str, call: Callable[[], None]) -> None:
        try:
            call()
        except (*CONNECTION_ERRORS, RedisError) as error:  # one that has no memory left refuses to write, for example
            log.warning("permits_wait_for_redis", limit=name, error=str(error))
            self._retry_at(name, time.monotonic() + _AGAIN_S)

    def _retry_at(self, name: str, then: float) -> None:
        for (limit_name, _), queue in self._queues.items():
            if limit_name == name:
                queue.retry_at(then)

    def _limit(self, name: str) -> Limit | None:
        """The definition of a limit; None: there is none."""
        limit, until = self._known.get(name, (None, 0.0))
        now = time.monotonic()
        if limit is None or now >= until:
            try:
                limit = self._limits.get(name)
            except OSError:  # the volume is away: it is as it was
                pass
            except ParallelRunError:
                self._known.pop(name, None)
                return None
            if limit is not None:
                self._known[name] = limit, now + _KNOWN_S
        return limit

    # What workers say

    def _read(self, connection: _Connection) -> bool:
        """Take in what a worker has sent; returns False when it is gone, or can't be understood."""
        try:
            data = connection.end.recv(1 << 16)
            *lines, connection.received = (connection.received + data).split(b"\n")
            if data and len(connection.received) <= _MOST_LINE:
                for line in lines:
                    self._take(connection, json.loads(line))
                return True
        except BlockingIOError:
            return True
        except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
            log.warning("permits_protocol_violated", worker=connection.name, error=str(error))
        for key in [key for key in self._queues if key[1] == connection.job_id]:
            queue = self._queues[key]
            self._end(key[0], queue, [caller for caller in queue.callers() if caller[0] is connection])
            if queue.is_unused:
                del self._queues[key]
        return False

    def _take(self, connection: _Connection, message: dict[str, Any]) -> None:
        name, number = str(message["limit"]), int(message["id"])
        tokens = min(_MOST_TOKENS, max(0, int(message.get("tokens", 0))))
        if error := self._refusal(connection, name, tokens):
            self._answer(WaitingCall((connection, number), Call("", 0)), {"error": error})
            return
        queue, caller = self._queues[name, connection.job_id], (connection, number)
        if message["what"] == "take":
            queue.add(WaitingCall(caller, Call(f"{connection.name}/{number}", tokens)))
        elif message["what"] == "end":
            self._end(name, queue, [caller])
        elif message["what"] == "slow":
            pause_s = min(_MOST_PAUSE_S, max(0.0, float(message["seconds"])))
            log.info("service_refused", limit=name, pause_s=pause_s, worker=connection.name)
            self._ask_redis(name, lambda: self._permits.slow_down(name, pause_s))

    def _refusal(self, connection: _Connection, name: str, tokens: int) -> str:
        """Return why a call never gets a permit; empty: it may wait for one."""
        if name not in connection.limits:
            names = ", ".join(sorted(connection.limits))
            return f"the job has no limit {name!r} among its rate_limits ({names})"
        limit = self._limit(name) if tokens else None
        most = limit and limit.tokens_per_minute
        if most and tokens > most:
            return f"a call of {tokens:,} tokens: the limit {name!r} has {most:,} in a minute"
        return ""

    def _end(self, name: str, queue: PermitQueue, callers: list[Any]) -> None:
        holders = queue.end(callers)
        limit = self._limit(name)
        if holders and limit is not None and limit.in_flight:
            self._retry_at(name, 0.0)
            self._ask_redis(name, lambda: self._permits.give_back(name, holders))

    def _answer(self, waiting: WaitingCall, answer: dict[str, Any]) -> None:
        connection, number = waiting.caller
        with suppress(OSError):  # it is gone, which is noticed when it is read
            connection.end.sendall(json.dumps({"id": number, **answer}).encode() + b"\n")
