"""Declares the operations of the API: each by its method and path, its summary, its answer, and its problems."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar

from fastapi import Depends, Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from parallelrun_api.context import access_check, context_of
from parallelrun_api.http.audit import ReadKind
from parallelrun_api.http.lazy_fastapi import LazyRoute
from parallelrun_api.routes.responses import problems
from parallelrun_core.answers.answer import Answer

_Access = Callable[..., Awaitable[None]]
_CHECK: Final = access_check()
_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])
_Arguments = Callable[[Request], dict[str, Any]]


class Operations:
    """The operations of one subject.

    Args:
        tag: the subject, as the OpenAPI document has it.
        prefix: of their paths.
        about: what the document says of the subject, once for all modules of it.
        is_open: whoever reaches the server may call them.
    """

    def __init__(self, tag: str, prefix: str = "/v1", *, about: str = "", is_open: bool = False) -> None:
        self.routes: list[LazyRoute] = []
        self.tag: Final = tag
        self.about: Final = about
        self._prefix = prefix
        self._is_open = is_open

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
            options: those of `route`.
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

    def route(
        self,
        route: str,
        *,
        access: _Access = _CHECK,
        arguments: _Arguments | None = None,
        reads: ReadKind = "",
        **options: Any,
    ) -> Callable[[_Endpoint], _Endpoint]:
        """Return a decorator that adds a function as one operation, all of which is said by the options.

        Args:
            route: its method and path, as `GET /nodes`.
            access: what `access_check` returns for it, if its method alone doesn't say who may call it.
            reads: the kind of read for the audit log, if it hands out what jobs have made; empty: it does not.
            arguments: reads from a request what the function takes beside `request` and `context`, in place of FastAPI,
                which takes 1 ms of CPU for each request.
            options: of FastAPI's routes.
        """
        method, path = route.split()
        shared = {"tags": [self.tag], "dependencies": [] if self._is_open else [Depends(access)]}

        def add(endpoint: _Endpoint) -> _Endpoint:
            direct = _direct(endpoint, arguments, access) if arguments is not None else None
            options_of_route = {**shared, **options}
            self.routes.append(
                LazyRoute(method, self._prefix + path, endpoint, options_of_route, direct=direct, reads=reads)
            )
            return endpoint

        return add


def _direct(endpoint: Callable[..., Any], arguments: _Arguments, access: _Access) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        context = context_of(request)
        await access(request, context)
        response = await endpoint(request, context, **arguments(request))
        await response(scope, receive, send)

    return answer
