"""Answers of this facade: JSON, and errors in the form that the client prints well."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from parallelrun_api.http.audit import ReadKind
from parallelrun_api.http.errors import HttpError
from parallelrun_api.http.problems import problem_of
from parallelrun_api.models import Problem
from parallelrun_api.people.quotas import QuotaExceeded
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.store.connection import RedisError

_CODES: Final = {
    401: "Unauthorized", 403: "Forbidden", 404: "ResourceNotFound", 409: "Conflict", 413: "RequestEntityTooLarge",
    429: "TooManyRequests", 501: "NotSupported", 503: "ServiceUnavailable",
}  # fmt: skip
HANDS_OUT: Final = "hands out"
"""Tag of routes that only read, and hand out what jobs have written, or a right: each answer is in the audit log."""


class NotSupported(HttpError, code="not_supported", http_status=501):
    """ParallelRun has nothing like this."""


def answer(value: object, status: int = 200) -> Response:
    return Response(
        json.dumps(value), status_code=status, headers={"Cache-Control": "no-store"}, media_type="application/json"
    )


def resource(
    scope: str,
    names: Mapping[str, str],
    properties: Mapping[str, Any],
    *,
    dates: Mapping[str, str | None] | None = None,
    **more: object,
) -> dict[str, Any]:
    """Something in a workspace, as the service describes it.

    Args:
        scope: the path of the workspace.
        names: the name of each kind of thing on the path from there, such as those of `batchEndpoints` and, in one,
            `deployments`.
        dates: when it was made and changed; None: that isn't told.
        more: fields beside the properties that not all kinds have.
    """
    created_by = {"createdBy": "parallelrun", "createdByType": "User"}
    return {
        "id": scope + "".join(f"/{kind}/{name}" for kind, name in names.items()),
        "name": [*names.values()][-1],
        "type": "/".join(["Microsoft.MachineLearningServices/workspaces", *names]),
        **more,
        **({"systemData": {**created_by, **dates}} if dates else {}),
        "properties": properties,
    }


def begun(value: dict[str, Any]) -> Response:
    """The answer to the begin of something that takes a while, for which clients poll: it has ended already, and they
    see that at once. Earlier releases can't read an answer that is the only one.
    """
    unfinished = {**value, "properties": {**value["properties"], "provisioningState": "Creating"}}
    created = answer(unfinished, 201)
    created.headers["x-ms-retry-after-ms"] = "50"
    return created


def refusal(error: Exception) -> Response | None:
    """The answer to an error, as the service would give it; None when it is a bug."""
    problem = problem_of(error)
    if problem is None:
        return None
    is_over_quota = isinstance(error, QuotaExceeded)  # which a client that tries again will be, too
    code = "QuotaExceeded" if is_over_quota else _code_of(problem.status)
    headers = {"Cache-Control": "no-store", "x-ms-error-code": code}
    if isinstance(error, HttpError):
        headers |= error.headers
    if problem.status in (429, 503) and not is_over_quota:
        headers["Retry-After"] = "2"
    body = json.dumps({"error": {**_body(problem), "code": code}})
    status = 400 if problem.status == 422 or is_over_quota else problem.status
    return Response(body, status_code=status, headers=headers, media_type="application/json")


class FacadeRoute(APIRoute):
    """A route whose errors are answered in the form of this facade."""

    @property
    def reads(self) -> ReadKind:
        return "each" if HANDS_OUT in self.tags else ""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_and_refuse(request: Request) -> Response:
            try:
                return await handle(request)
            except (ParallelRunError, RequestValidationError, HTTPException, RedisError, OSError) as error:
                refused = refusal(error)
                if refused is None:
                    raise
                return refused

        return handle_and_refuse


def _body(problem: Problem) -> dict[str, Any]:
    details = [
        {
            "code": "UserError",
            "target": entry.pointer,
            "message": f"{entry.pointer}: {entry.message}" + (f" ({entry.hint})" if entry.hint else ""),
        }
        for entry in problem.errors
    ]
    return {"code": _code_of(problem.status), "message": problem.detail, "target": "", "details": details}


def _code_of(status: int) -> str:
    return _CODES.get(status, "UserError" if status < 500 else "InternalServerError")
