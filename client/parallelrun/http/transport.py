"""HTTP as the client needs it: always with timeouts, repeated only where that is safe, errors as objects."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from parallelrun.errors import ConnectionFailed, ParallelRunError, error_of
from parallelrun_core.service.pacing import Backoff

REPEATABLE_STATUS: Final = frozenset({429, 502, 503, 504})
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_MAX_PROBLEM_BYTES: Final = 1 << 20
_TOO_MANY_REQUESTS: Final = 429
_OVER_QUOTA: Final = "quota_exceeded"
"""Also a 429, but of what the person has, not of how busy the server is: it may last for days."""
_IN_FLIGHT: Final = "idempotency_key_in_flight"
"""A request whose answer was lost is still in progress; asking again gets its answer."""

Body = Callable[[], dict[str, Any]]
"""Builds the keyword arguments for the body of an httpx request, again for each attempt."""


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """The rule by which, and the pauses after which, an idempotent request is repeated."""

    attempts: int = 5
    first_pause_s: float = 0.2
    longest_pause_s: float = 30.0
    """A server that asks for a longer pause than this counts as down."""
    busy_s: float = 120.0
    """Seconds for which a server may answer that it is busy (429), which says that it is well and will answer later."""

    def busy_pause_s(self, refusals: int, asked_s: float | None, waited_s: float) -> float | None:
        """Return how long to wait after so many answers in a row that the server is busy; None: give up."""
        if waited_s >= self.busy_s:
            return None
        spread_s = Backoff(self.first_pause_s, self.longest_pause_s / 6, jitter=0.5).after_s(refusals)
        return min(asked_s or 0.0, self.longest_pause_s) + spread_s

    def pause_s(self, failures: int, asked_s: float | None) -> float | None:
        """Return how long to wait after this many failures in a row; None: give up."""
        if failures >= self.attempts:
            return None
        if asked_s is not None:
            return asked_s if asked_s <= self.longest_pause_s else None
        # Spread, so that many clients don't all ask at once when a server is back.
        return Backoff(self.first_pause_s, self.longest_pause_s, jitter=0.5).after_s(failures)


class Transport:
    """Talks to one server. Safe to share between threads.

    Raises, from every method:
        ConnectionFailed: the server can't be reached.
        ApiError: it refused.
    """

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        timeout_s: float = 30.0,
        retry: RetryPolicy | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        scheme, host = _checked(url)
        token = token.strip()  # files with a token end with a line break
        if not (token.isascii() and token.isprintable()):
            raise ConnectionFailed("The token has characters that no request can carry. Is it the right one?")
        headers = {"User-Agent": f"parallelrun/{version('parallelrun')}", "Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self.url = url.rstrip("/")
        self.timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, 5.0))
        self._retry = retry or RetryPolicy()
        self._sleep = sleep
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=self.timeout,
            # A proxy would ask its own loopback interface.
            trust_env=host not in _LOOPBACK,
            # Loading the machine's certificates takes longer than most requests, and plain HTTP doesn't use them.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if scheme == "http" else True,
        )

    def close(self) -> None:
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        idempotent: bool,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
        read_timeout_s: float | None = None,
    ) -> Any:
        """Send one request and return the JSON of its answer; repeated on failure only when `idempotent`."""
        failures = refusals = 0
        waited_s = 0.0
        while True:
            try:
                response = self._http.request(
                    method,
                    path,
                    params=params,
                    headers=headers,
                    timeout=self._timeout(read_timeout_s),
                    **(body() if body else {}),
                )
                if response.is_success:
                    return self._json(response)
                error: ParallelRunError = error_of(response.status_code, problem_of(response))
                passes = error.code != _OVER_QUOTA
                again = (response.status_code in REPEATABLE_STATUS and passes) or error.code == _IN_FLIGHT
                asked_s = retry_after_s(response.headers)
                is_busy = response.status_code == _TOO_MANY_REQUESTS and passes
            except httpx.TransportError as failure:
                error, again, asked_s, is_busy = self.lost(failure), True, None, False
            failures, refusals = (failures, refusals + 1) if is_busy else (failures + 1, 0)
            pause_s = None
            if is_busy and idempotent:
                pause_s = self._retry.busy_pause_s(refusals, asked_s, waited_s)
            elif again and idempotent:
                pause_s = self._retry.pause_s(failures, asked_s)
            if pause_s is None:
                raise error
            self._sleep(pause_s)
            waited_s += pause_s

    @contextmanager
    def stream(
        self,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        read_timeout_s: float | None = None,
    ) -> Iterator[httpx.Response]:
        """GET an answer of any length, to be read in chunks. Not repeated: only the caller knows how far it has read.

        Raises:
            httpx.TransportError: the connection broke while the answer was read. Before that: ConnectionFailed.
        """
        request = self._http.build_request(
            "GET", path, params=params, headers=headers, timeout=self._timeout(read_timeout_s)
        )
        try:
            response = self._http.send(request, stream=True)
        except httpx.TransportError as failure:
            raise self.lost(failure) from failure
        try:
            if not response.is_success:
                raise error_of(response.status_code, problem_of(response))
            yield response
        finally:
            response.close()

    def is_answered(self, path: str, *, timeout_s: float = 2.0) -> bool:
        """Return whether a GET succeeds right now; one try, and no error if it fails."""
        try:
            return self._http.get(path, timeout=timeout_s).is_success
        except httpx.TransportError:
            return False

    def lost(self, failure: Exception) -> ConnectionFailed:
        """The error for a connection that failed or broke."""
        return ConnectionFailed(f"No answer from {self.url}: {str(failure) or type(failure).__name__}.")

    def _timeout(self, read_s: float | None) -> httpx.Timeout:
        if read_s is None:
            return self.timeout
        return httpx.Timeout(self.timeout.write, connect=self.timeout.connect, read=read_s)

    def _json(self, response: httpx.Response) -> Any:
        try:
            return response.json() if response.content else None
        except ValueError as error:
            raise ConnectionFailed(f"{self.url} did not answer with JSON: is it a ParallelRun API?") from error


def _checked(url: str) -> tuple[str, str]:
    """Scheme and host of a server's URL.

    Raises:
        ConnectionFailed: it isn't one.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        host.encode("idna")
        if parts.scheme in {"http", "https"} and host and parts.port != 0:
            return parts.scheme, host
    except ValueError:
        pass  # raised below
    raise ConnectionFailed(f"{url!r} is not the URL of a server, such as http://HOST:PORT.")


def problem_of(response: httpx.Response) -> dict[str, Any]:
    """The `application/problem+json` of an answer; empty if it has none that can be read."""
    raw = b""
    try:
        for chunk in response.iter_bytes() if not response.is_stream_consumed else [response.content]:
            raw += chunk
            if len(raw) > _MAX_PROBLEM_BYTES:
                return {}
        problem = json.loads(raw)
    except (ValueError, httpx.TransportError):
        return {}
    return problem if isinstance(problem, dict) else {}


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The pause that the server asks for, as seconds or as a date; None if it asks for none."""
    text = headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time()) if text else None
    except ValueError:
        return None
