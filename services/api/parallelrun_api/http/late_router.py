"""A router that is made when the first request for it comes: most servers never need its modules."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

from anyio.to_thread import run_sync
from starlette.datastructures import URLPath
from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import ASGIApp, Receive, Scope, Send


class LateRouter(BaseRoute):
    """A route to a router that is made in a thread at the first request, once.

    Args:
        make: makes the router.
        leads_to: returns whether a path is the router's; None: each is that comes this far.
    """

    def __init__(self, make: Callable[[], ASGIApp], leads_to: Callable[[str], bool] | None = None) -> None:
        self._make = make
        self._leads_to = leads_to
        self._router: ASGIApp | None = None
        self._lock = Lock()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        is_here = scope["type"] == "http" and (self._leads_to is None or self._leads_to(scope["path"]))
        return (Match.FULL if is_here else Match.NONE), {}

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        """Nothing here has a name."""
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        router = self._router if self._router is not None else await run_sync(self._open)
        await router(scope, receive, send)

    def _open(self) -> ASGIApp:
        with self._lock:
            if self._router is None:
                self._router = self._make()
            return self._router
