"""Declares the operations of the API: each by its method and path, its summary, its answer, and its problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from fastapi import APIRouter, Response

from parallelrun_api.routes.responses import problems
from parallelrun_core.answers.answer import Answer

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])


class Operations(APIRouter):
    """The operations of one subject.

    Args:
        tag: the subject, as the OpenAPI document has it.
        prefix: of their paths.
    """

    def __init__(self, tag: str, prefix: str = "/v1") -> None:
        super().__init__(prefix=prefix, tags=[tag])

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
        method, path = route.split()
        if answer is None:
            options.setdefault("response_class", Response)
        return self.api_route(
            path,
            methods=[method],
            summary=summary,
            response_model=answer,
            status_code=204 if method == "DELETE" and answer is None else status,
            response_description=result,
            responses={**(others or {}), **problems(*statuses)},
            **options,
        )
