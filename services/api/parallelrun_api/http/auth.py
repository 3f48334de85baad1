"""Admits requests by their bearer token or cookie, Host header and Origin header."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Final, Protocol

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from parallelrun_api.http.errors import Forbidden, Misdirected
from parallelrun_api.http.problems import problem_response
from parallelrun_api.http.sessions import HEADER, Sessions
from parallelrun_api.people.person import CURRENT, NOBODY, Person
from parallelrun_core.errors import ParallelRunError, Unauthorized

OPEN_PATHS: Final = frozenset({"/livez", "/readyz"})
_DOTS: Final = 2
"""Between the three parts of a JWT."""
_PROVIDER_THREADS: Final = 8
"""Threads that may wait for a provider's keys: anybody can have them fetched."""
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Admission:
    """The right of a request to its answer, for one that takes long: a session or a token may end meanwhile.

    Args:
        admit: raises Unauthorized or Forbidden if the request would be refused by now.
    """

    def __init__(self, admit: Callable[[], Awaitable[object]] | None = None) -> None:
        self._admit = admit

    async def has_ended(self) -> bool:
        """Return whether the request would be refused by now. If nobody can say, it would not."""
        try:
            if self._admit is not None:
                await self._admit()
        except (Unauthorized, Forbidden):
            return True
        except ParallelRunError:
            return False
        return False


ADMISSION: Final[ContextVar[Admission]] = ContextVar("admission", default=Admission())  # noqa: B039 - it never changes
"""That of the request that is being answered; outside of one, it has no end."""


class Door(Protocol):
    """Admits the requests to some paths by what their clients show in place of a token, which was made of one."""

    def leads_to(self, path: str) -> bool:
        """Return whether it decides about this path."""
        ...

    def admit(self, scope: Scope, headers: dict[bytes, bytes]) -> str:
        """The name of the token that it stands for; empty if none is needed.

        Raises:
            Unauthorized, Forbidden: it is not valid, or not for this.
        """
        ...

    def refusal(self, error: ParallelRunError, path: str) -> Response:
        """Return what the clients of these paths take for a refusal."""
        ...


class Open(Protocol):
    """Paths that anybody is served whose request has the right host."""

    def serves(self, scope: Scope, headers: dict[bytes, bytes]) -> bool: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Guard:
    """Refuses requests that may not be made, before any route sees them."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        sessions: Sessions,
        hosts: frozenset[str],
        open_paths: frozenset[str],
        doors: Sequence[Door] = (),
        pages: Open | None = None,
    ) -> None:
        self._app = app
        self._token = sessions.token
        self._sessions = sessions
        self._pages = pages
        self._hosts = hosts
        self._open_paths = open_paths
        self._doors = doors
        self._provider_threads = CapacityLimiter(_PROVIDER_THREADS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        door = next((door for door in self._doors if door.leads_to(scope["path"])), None)
        try:
            self._check_host(headers)
            self._check_origin(scope["method"], headers)
            if self._pages is not None and self._pages.serves(scope, headers):
                await self._pages(scope, receive, send)
                return
            if scope["path"] not in self._open_paths:
                person = await self._admitted(scope, headers, door)
                scope.setdefault("state", {})["token_name"] = person.name
                CURRENT.set(person)
                ADMISSION.set(Admission(partial(self._admitted, scope, headers, door)))
            else:
                CURRENT.set(NOBODY)
        except ParallelRunError as error:
            answer = door.refusal if door is not None else problem_response
            await answer(error, scope["path"])(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _admitted(self, scope: Scope, headers: dict[bytes, bytes], door: Door | None) -> Person:
        return await self._by_provider(headers, door) or self._person(scope, headers, door)

    async def _by_provider(self, headers: dict[bytes, bytes], door: Door | None) -> Person | None:
        """Return the person of a token that an OpenID Connect provider has made; None: there is none.

        Raises:
            Unauthorized, Unavailable: it is not valid, or nobody can say now.
        """
        oidc = self._token.oidc
        if oidc is None or door is not None:
            return None
        text = bearer_in(headers)
        if text.count(b".") != _DOTS or self._token.name_of(text):
            return None
        return await run_sync(oidc.person_of, text, limiter=self._provider_threads)

    def _person(self, scope: Scope, headers: dict[bytes, bytes], door: Door | None) -> Person:
        """The person of a request. Raises Unauthorized, Forbidden."""
        token = self._token
        if door is not None:
            return token.person_of(door.admit(scope, headers))
        if token.proxies is not None and b"authorization" not in headers:
            name = token.proxies.name_of(scope.get("client"), headers)
            if name and scope["method"] not in _SAFE_METHODS and HEADER.lower().encode() not in headers:
                raise Forbidden(f"Behind a proxy, a request that changes something needs the header {HEADER}.")
            if name:
                return token.person_from_proxy(name)
        return token.person_of(self._check_token(scope["method"], headers))

    def _check_host(self, headers: dict[bytes, bytes]) -> None:
        if not self._hosts:
            return
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
        if name not in self._hosts:
            raise Misdirected(f"Unknown host name {name[:100]!r}; add it with --allowed-hosts.")

    def _check_origin(self, method: str, headers: dict[bytes, bytes]) -> None:
        origin = headers.get(b"origin")
        if origin is None or method in _SAFE_METHODS:
            return
        own_host = headers.get(b"host", b"").decode("latin-1").lower()
        if origin.decode("latin-1").lower().partition("://")[2] != own_host:
            raise Forbidden("Pages of other origins may not change anything here.")

    def _check_token(self, method: str, headers: dict[bytes, bytes]) -> str:
        """The name of the token; empty if none is needed."""
        if not self._token.is_needed:
            return ""
        if b"authorization" not in headers and b"cookie" in headers:
            return self._sessions.admit(method, headers)
        name = self._token.name_of(bearer_in(headers))
        if not name:
            raise Unauthorized("A valid token is required: send it as `Authorization: Bearer TOKEN`.")
        return name


def bearer_in(headers: dict[bytes, bytes]) -> bytes:
    """Return the bearer token of a request; empty: it has none."""
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""
