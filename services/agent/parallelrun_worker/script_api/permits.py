"""A worker's side of permits: it asks its agent over a socket that it has inherited, by lines of JSON.

{"what": "take", "id": N, "limit": NAME, "tokens": N}   answered by {"id": N} when the call may begin, or by
                                                        {"id": N, "error": TEXT}
{"what": "end", "id": N, "limit": NAME}                 the call has ended
{"what": "slow", "id": N, "limit": NAME, "seconds": S}  the service has refused it: no calls for so long
"""

from __future__ import annotations

import asyncio
import json
import math
import socket
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from queue import SimpleQueue
from types import TracebackType
from typing import Any, ClassVar

from parallelrun_worker.script_api.refusals import PermitRefused

_DEFAULT_PAUSE_S = 1.0
_MOST_PAUSE_S = 3600.0
"""However long a service asks for: an answer may say anything."""
_MOST_TOKENS = 10**12
_AGENT_GONE = "this worker's agent gives out permits no more"


class Stopwatch:
    """The time that a mini-batch has waited for permits, which is no time of its run(); by limit, too."""

    def __init__(self) -> None:
        self._all = _Span()
        self._limits: dict[str, _Span] = {}

    def begin(self, limit: str) -> None:
        """Begin to wait for a permit of a limit; several calls may do so at once."""
        self._all.begin()
        self._limits.setdefault(limit, _Span()).begin()

    def end(self, limit: str) -> None:
        """End to wait for one of them."""
        self._all.end()
        self._limits[limit].end()

    def seconds(self) -> float:
        """Return how long it has waited so far."""
        return self._all.seconds()

    def by_limit(self) -> dict[str, float]:
        """Return how long it has waited for each limit that it has asked for permits; 0 if it never had to."""
        return {name: span.seconds() for name, span in self._limits.items()}


class _Span:
    """The time in which at least one of several calls waits."""

    def __init__(self) -> None:
        self._waiting = 0
        self._since = self._total = 0.0

    def begin(self) -> None:
        if not self._waiting:
            self._since = time.perf_counter()
        self._waiting += 1

    def end(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._total += time.perf_counter() - self._since

    def seconds(self) -> float:
        return self._total + (time.perf_counter() - self._since if self._waiting else 0.0)


WAITED: ContextVar[Stopwatch | None] = ContextVar("parallelrun_waited", default=None)
"""The stopwatch of the mini-batch that the present task runs."""


class PermitClient:
    """Asks for permits; safe in threads, and on an event loop.

    Args:
        fd: of the socket to the agent; below 0: outside of a job, everybody gets a permit at once.
    """

    process: ClassVar[PermitClient]

    def __init__(self, fd: int = -1) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._number = 0
        self._on_answer: dict[int, Callable[[str], object]] = {}
        self._is_closed = False

    @property
    def is_free(self) -> bool:
        """Return whether everybody gets a permit at once."""
        return self._fd < 0

    def ask(self, limit: str, tokens: int, on_answer: Callable[[str], object]) -> int:
        """Ask for a permit, and return the call's number.

        Args:
            on_answer: called in another thread when the call may begin, with an empty text, or with an error.
        """
        with self._lock:
            if self._is_closed:
                raise PermitRefused(_AGENT_GONE)
            self._number += 1
            number = self._number
            self._on_answer[number] = on_answer
            self._say({"what": "take", "id": number, "limit": limit, "tokens": tokens})
        return number

    def tell(self, kind: str, limit: str, number: int, **more: Any) -> None:
        """Tell the agent something about a call."""
        with self._lock:
            self._on_answer.pop(number, None)
            if not self._is_closed:
                self._say({"what": kind, "id": number, "limit": limit, **more})

    def _say(self, message: dict[str, Any]) -> None:
        if self._socket is None:
            self._socket = socket.socket(fileno=self._fd)
            threading.Thread(target=self._read, args=(self._socket,), name="permits", daemon=True).start()
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def _read(self, end: socket.socket) -> None:
        with end.makefile("rb") as lines:
            for line in lines:
                answer = json.loads(line)
                with self._lock:
                    on_answer = self._on_answer.pop(answer["id"], None)
                if on_answer is not None:
                    on_answer(answer.get("error", ""))
        with self._lock:
            self._is_closed = True
            end.close()
            waiting, self._on_answer = self._on_answer, {}
        for on_answer in waiting.values():  # waiting is no time of run(): nothing else would end it
            on_answer(_AGENT_GONE)


PermitClient.process = PermitClient()


class Permit:
    """A permit for one call, for `with` and `async with`: it is waited for at the begin, and given back at the end.

    Raises:
        ValueError: the number of tokens is none.
    """

    def __init__(self, limit: str, tokens: int, client: PermitClient) -> None:
        self._limit = limit
        self._tokens = _whole(tokens)
        self._client = client
        self._number = 0
        self._stopwatch = WAITED.get()

    def retry_after(self, after: Any = None) -> float:
        """Say that the service has refused the call (429, 503), so that nobody calls it for a while, and fewer later.

        Args:
            after: seconds; or an answer with `headers`, such as that of requests or httpx, or such a header's text.

        Returns:
            the seconds after which to try again: an hour at most.
        """
        seconds = _seconds(after)
        if not self._client.is_free:
            self._client.tell("slow", self._limit, self._number, seconds=seconds)
        return seconds

    def __enter__(self) -> Permit:
        if not self._client.is_free:
            answers: SimpleQueue[str] = SimpleQueue()
            self._begin(answers.put)
            self._finish(answers.get())
        return self

    async def __aenter__(self) -> Permit:
        if not self._client.is_free:
            events = asyncio.get_running_loop()
            future: asyncio.Future[str] = events.create_future()

            def settle(error: str) -> None:
                if not future.done():
                    future.set_result(error)

            self._begin(lambda error: events.call_soon_threadsafe(settle, error))
            try:
                self._finish(await future)
            except asyncio.CancelledError:
                if self._stopwatch is not None:
                    self._stopwatch.end(self._limit)
                self._client.tell("end", self._limit, self._number)
                raise
        return self

    def _begin(self, on_answer: Callable[[str], object]) -> None:
        if self._stopwatch is not None:
            self._stopwatch.begin(self._limit)
        self._number = self._client.ask(self._limit, self._tokens, on_answer)

    def _finish(self, error: str) -> None:
        if self._stopwatch is not None:
            self._stopwatch.end(self._limit)
        if error:
            raise PermitRefused(error)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._client.is_free:
            self._client.tell("end", self._limit, self._number)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, at)


def _whole(tokens: Any) -> int:
    """Return a number of tokens, which scripts also estimate by fractions.

    Raises:
        ValueError: it is no number of tokens.
    """
    try:
        number = float(tokens)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= _MOST_TOKENS:
        raise ValueError(f"limit(name, tokens=…) takes a number of tokens from 0 to {_MOST_TOKENS:,}, not {tokens!r}")
    return math.ceil(number)


def _seconds(after: Any) -> float:
    """Return the seconds in an answer's Retry-After, which is a number or a date (RFC 9110, 10.2.3)."""
    seconds = _said_seconds(after)
    return min(_MOST_PAUSE_S, max(0.0, seconds)) if math.isfinite(seconds) else _DEFAULT_PAUSE_S


def _said_seconds(after: Any) -> float:
    headers = getattr(after, "headers", None)
    if headers is not None:
        after = headers.get("retry-after", headers.get("Retry-After"))
    if after is None:
        return _DEFAULT_PAUSE_S
    try:
        return float(after)
    except (TypeError, ValueError):
        pass
    try:
        return parsedate_to_datetime(str(after)).timestamp() - time.time()
    except (TypeError, ValueError):
        return _DEFAULT_PAUSE_S
