"""FastAPI, without what a server of a short job never needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

if TYPE_CHECKING:
    from fastapi.routing import APIRoute


@contextmanager
def unbuilt_models() -> Iterator[None]:
    """Let models that are defined inside be built when they are first used; those defined afterwards are as ever.

    FastAPI has models of an OpenAPI document, which take 45 ms of the 270 of the API's own imports.
    """
    BaseModel.model_config["defer_build"] = True
    try:
        yield
    finally:
        del BaseModel.model_config["defer_build"]


def leave_out_pydantic_1() -> None:
    """Keep `pydantic.v1` out of this process: FastAPI's first route would import it, which takes 20 ms, only to see
    that no model is of it."""
    cast("dict[str, Any]", sys.modules).setdefault("pydantic.v1", None)


class LazyRoute(Route):
    """An operation: its path and method, and FastAPI's route, which is made when it is first called or described.

    FastAPI prepares each parameter and answer of a route, and of one in a router that is included twice. For all of
    them, this was 0.18 s of CPU before a server answered its first request.

    Args:
        direct: answers in place of FastAPI's route, which then only describes the operation.
        reads: the kind of read that it is for the audit log.
    """

    def __init__(
        self,
        method: str,
        path: str,
        endpoint: Callable[..., Any],
        options: dict[str, Any],
        *,
        direct: ASGIApp | None = None,
        reads: str = "",
    ) -> None:
        super().__init__(path, endpoint, methods=[method], name=options.get("name"))
        self.methods = {method}  # Starlette would answer HEAD as well
        self.reads = reads
        self._options = options
        self.app = direct or self._begin

    @cached_property
    def api_route(self) -> APIRoute:
        from fastapi.routing import APIRoute  # here: this module is imported before FastAPI is

        _leave_source_unread(self.endpoint)
        return APIRoute(self.path, self.endpoint, methods=self.methods, **self._options)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child_scope = super().matches(scope)
        if match != Match.NONE:
            child_scope["route"] = self
        return match, child_scope

    async def _begin(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.app = self.api_route.app
        await self.app(scope, receive, send)


def _leave_source_unread(endpoint: Callable[..., Any]) -> None:
    """Tell FastAPI that it has read the source of an endpoint, 3 ms for each and 6 more for the first one, to name its
    line in errors that nobody gets to see. A release that keeps it elsewhere reads it.
    """
    sources = getattr(sys.modules["fastapi.routing"], "_endpoint_context_cache", None)
    if isinstance(sources, dict):
        sources[id(endpoint)] = {}
