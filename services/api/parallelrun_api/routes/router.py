"""Declares the operations of the API: each by its method and path, its summary, its answer, and its problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeVar

from fastapi import Depends, Response, routing
from fastapi.routing import APIRoute
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from parallelrun_api.context import check_access
from parallelrun_api.routes.responses import problems
from parallelrun_core.answers.answer import Answer

_SOURCES: dict[int, dict[str, str]] = getattr(routing, "_endpoint_context_cache", {})
"""Where FastAPI keeps what it has read of an endpoint's source, to name its line in errors that nobody gets to see."""

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])


class Operation(Route):
    """An operation: its path and method, and FastAPI's route, which is made when it is first called or described.

    FastAPI prepares each parameter and answer of a route, and of one in a router that is included twice. For all of
    them, this was 0.18 s of CPU before a server answered its first request.
    """

    def __init__(self, method: str, path: str, endpoint: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(path, endpoint, methods=[method], name=options.get("name"))
        self.methods = {method}  # Starlette would answer HEAD as well
        self._options = options
        self.app = self._begin

    @cached_property
    def api_route(self) -> APIRoute:
        _SOURCES[id(self.endpoint)] = {}  # reading it takes 3 ms for each, and 6 more for the first one
        return APIRoute(self.path, self.endpoint, methods=self.methods, **self._options)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child_scope = super().matches(scope)
        if match != Match.NONE:
            child_scope["route"] = self
        return match, child_scope

    async def _begin(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.app = self.api_route.app
        await self.app(scope, receive, send)


class Operations:
    """The operations of one subject.

    Args:
        tag: the subject, as the OpenAPI document has it.
        prefix: of their paths.
        is_open: whoever reaches the server may call them.
    """

    def __init__(self, tag: str, prefix: str = "/v1", *, is_open: bool = False) -> None:
        self.routes: list[Operation] = []
        self._prefix = prefix
        self._shared = {"tags": [tag], "dependencies": [] if is_open else [Depends(check_access)]}

    def operation(
        self,
        route: str,
        summary: str,
        answer: type[Answer] | None,
        statuses: Iterable[int] = (),
        result: str = "Successful Response",
        *,
        status: int = 200,
        others: dict[int | str, dict[str, Any]] | None = None,
        **options: Any,
    ) -> Callable[[_Endpoint], _Endpoint]:
        """Return a decorator that adds a function as one operation.

        Args:
            route: its method and path, as `GET /nodes`.
            answer: None: it answers with something else than JSON, or as a deletion with nothing.
            statuses: of the problems that it may answer with, beside those of all operations.
            result: what its usual answer says.
            status: that of its usual answer; of a deletion without an answer it is 204.
            others: its answers beside the usual one and the problems, by status.
            options: of FastAPI's routes.
        """
        if answer is None:
            options.setdefault("response_class", Response)
        return self.route(
            route,
            summary=summary,
            response_model=answer,
            status_code=204 if route.startswith("DELETE ") and answer is None else status,
            response_description=result,
            responses={**(others or {}), **problems(*statuses)},
            **options,
        )

    def route(self, route: str, **options: Any) -> Callable[[_Endpoint], _Endpoint]:
        """Return a decorator that adds a function as one operation, all of which is said by the options.

        Args:
            route: its method and path, as `GET /nodes`.
            options: of FastAPI's routes.
        """
        method, path = route.split()

        def add(endpoint: _Endpoint) -> _Endpoint:
            self.routes.append(Operation(method, self._prefix + path, endpoint, {**self._shared, **options}))
            return endpoint

        return add
