"""Admits requests by their bearer token, Host header and Origin header."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from parallelrun_api.http.errors import Forbidden, Misdirected
from parallelrun_api.http.named_tokens import ONLY_ONE
from parallelrun_api.http.problems import problem_response
from parallelrun_core.errors import ParallelRunError, Unauthorized

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from parallelrun_api.http.token import Token

OPEN_PATHS: Final = frozenset({"/livez", "/readyz"})
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Guard:
    """Refuses requests that may not be made, before any route sees them."""

    def __init__(self, app: ASGIApp, *, token: Token, hosts: frozenset[str], open_paths: frozenset[str]) -> None:
        self._app = app
        self._is_open = not token.is_needed
        self._token = token.text.encode()
        self._named = token.named
        self._hosts = hosts
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        try:
            self._check_host(headers)
            self._check_origin(scope["method"], headers)
            if scope["path"] not in self._open_paths:
                scope.setdefault("state", {})["token_name"] = self._check_token(headers)
        except ParallelRunError as error:
            await problem_response(error, scope["path"])(scope, receive, send)
            return
        await self._app(scope, receive, send)

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
        own = headers.get(b"host", b"").decode("latin-1").lower()
        if origin.decode("latin-1").lower().partition("://")[2] != own:
            raise Forbidden("Pages of other origins may not change anything here.")

    def _check_token(self, headers: dict[bytes, bytes]) -> str:
        """The name of the token; empty if none is needed."""
        if self._is_open:
            return ""
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        name = self._name_of(given.strip()) if scheme.lower() == b"bearer" else ""
        if not name:
            raise Unauthorized("A valid token is required: send it as `Authorization: Bearer TOKEN`.")
        return name

    def _name_of(self, given: bytes) -> str:
        if self._token and hmac.compare_digest(given, self._token):
            return ONLY_ONE
        return self._named.name_of(given) if self._named is not None else ""
