"""Adds this facade to the application; all but its door is imported when the first request comes to it."""

from __future__ import annotations

from threading import Lock
from typing import Any, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, FastAPI
from starlette.datastructures import URLPath
from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import Receive, Scope, Send

from parallelrun_api.azure.auth import BLOBS, PREFIX, AzureDoor
from parallelrun_api.context import Context
from parallelrun_api.http.token import Token

OPEN_PATHS: Final = frozenset({f"{PREFIX}/discovery"})
"""The client asks there without showing anything; the answer has only what it was asked by."""
OWN_LIMITS: Final = BLOBS
"""Below this path, bodies have limits of their own."""


def install(app: FastAPI, context: Context, token: Token) -> AzureDoor:
    """Add this facade to an application; returns what admits requests to it."""
    door = AzureDoor(token)
    app.router.routes.append(_Rooms(app, door, context, token))
    return door


class _Rooms(BaseRoute):
    """Everything behind the door. Most servers never see a request for it, and all start without its modules."""

    def __init__(self, app: FastAPI, door: AzureDoor, context: Context, token: Token) -> None:
        self._app = app
        self._door = door
        self._context = context
        self._token = token
        self._router: APIRouter | None = None
        self._lock = Lock()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        is_here = scope["type"] == "http" and self._door.leads_to(scope["path"])
        return (Match.FULL if is_here else Match.NONE), {}

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        """Nothing here has a name."""
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        router = self._router if self._router is not None else await run_sync(self._open)
        await router(scope, receive, send)

    def _open(self) -> APIRouter:
        with self._lock:
            if self._router is None:
                from parallelrun_api.azure.routes import open_facade

                self._router = open_facade(self._app, self._context, self._token)
            return self._router
