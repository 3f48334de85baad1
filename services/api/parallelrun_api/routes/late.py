"""The routes of modules that are imported when the first of them is asked for.

A short job asks for what five of them have: importing all 22 was 30 of the 250 ms of CPU that the API's imports take.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from threading import Lock
from typing import Any

from anyio.to_thread import run_sync
from starlette.datastructures import URLPath
from starlette.routing import BaseRoute, Match, NoMatchFound, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from parallelrun_api.http.lazy_fastapi import LazyRoute
from parallelrun_api.routes.router import Operations
from parallelrun_core.service.process_start import prepare_structs


class LateRoutes(BaseRoute):
    """All routes of an application, for a request that those before this one don't answer.

    Args:
        modules: names of the modules in this package, each with its `router`, in the order of the contract.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = modules
        self._router: ASGIApp | None = None
        self._lock = Lock()

    @cached_property
    def operations(self) -> list[Operations]:
        """The routers of all modules, in order; imports them."""
        return [import_module(f"{__package__}.{name}").router for name in self._modules]

    @property
    def routes(self) -> list[LazyRoute]:
        return [route for router in self.operations for route in router.routes]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return (Match.FULL if scope["type"] == "http" else Match.NONE), {}

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        """Nothing here has a name."""
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        router = self._router if self._router is not None else await run_sync(self._open)
        await router(scope, receive, send)

    def _open(self) -> ASGIApp:
        with self._lock:
            if self._router is None:
                router = Router(self.routes, redirect_slashes=False)
                prepare_structs()
                self._router = router
            return self._router
