"""Every error as `application/problem+json` (RFC 9457), with a stable `code` for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from parallelrun_api.http.errors import HttpError
from parallelrun_api.models import Problem, ProblemEntry
from parallelrun_core.errors import NoRoom, NotFound, ParallelRunError, Unauthorized, Unavailable
from parallelrun_core.folder.disk_trouble import is_full, may_pass
from parallelrun_core.problems import message_of
from parallelrun_core.store.connection import CONNECTION_ERRORS, RedisError
from parallelrun_core.untrusted.sanitize import visible

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = "2"

_CODES: Final = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}


def install(app: FastAPI, routes: Callable[[], Sequence[Route]]) -> None:
    """Make an app answer every error with a problem.

    Args:
        routes: returns all of its routes, to say which methods an address has.
    """

    async def answer(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and error.status_code == 405:
            path = request.url.path
            methods = {method for each in routes() if each.path_regex.match(path) for method in each.methods or ()}
            error = HTTPException(
                405, error.detail, {"Allow": ", ".join(sorted(methods))} if methods else error.headers
            )
        return await _answer(request, error)

    app.add_exception_handler(ParallelRunError, answer)
    app.add_exception_handler(RequestValidationError, answer)
    app.add_exception_handler(HTTPException, answer)
    app.add_exception_handler(RedisError, answer)
    app.add_exception_handler(OSError, answer)


async def _answer(request: Request, error: Exception) -> Response:
    mapped = _answer_to(error)
    if mapped is None:
        raise error  # a bug: it is logged, and answered with 500, further out
    return mapped.response(request.url.path)


@dataclass(frozen=True)
class _Answer:
    """A known error, with the headers of its answer."""

    problem: Problem
    headers: dict[str, str] = field(default_factory=dict)

    def response(self, instance: str) -> Response:
        problem = self.problem.model_copy(update={"instance": instance})
        return Response(
            problem.model_dump_json(exclude_none=True),
            status_code=problem.status,
            headers={"Cache-Control": "no-store", **self.headers},
            media_type=MEDIA_TYPE,
        )


def problem_of(error: Exception) -> Problem | None:
    """Return what is told of an error; None when it is a bug."""
    mapped = _answer_to(error)
    return mapped.problem if mapped is not None else None


def problem_response(error: Exception, instance: str) -> Response:
    """The answer to an error outside of all routes."""
    return (_answer_to(error) or _internal("")).response(instance)


def internal_error(instance: str, trace_id: str) -> Response:
    """The answer to a bug; `trace_id` finds it in the log."""
    return _internal(trace_id).response(instance)


def _internal(trace_id: str) -> _Answer:
    detail = f"This is a bug in ParallelRun; the server's log has it as trace_id {trace_id}." if trace_id else ""
    return _Answer(_problem(500, "internal_error", "Something went wrong in ParallelRun.", detail, trace_id=trace_id))


def _problem(
    status: int,
    code: str,
    title: str,
    detail: str,
    *,
    errors: list[ProblemEntry] | None = None,
    trace_id: str = "",
) -> Problem:
    return Problem(
        type=f"urn:parallelrun:problem:{code}",
        title=title,
        status=status,
        detail=detail or title,
        code=code,
        errors=errors or [],
        trace_id=trace_id or None,
    )


def _answer_to(error: Exception) -> _Answer | None:
    """The answer to an error; None when it is a bug."""
    match error:
        case ParallelRunError():
            return _answer_to_own(error)
        case RequestValidationError():
            entries = [_of_parameter(details) for details in error.errors()]
            detail = "; ".join(f"{entry.pointer}: {entry.message}" for entry in entries)
            return _Answer(_problem(422, "invalid_input", "The request is not valid.", detail, errors=entries))
        case HTTPException():
            return _of_http(error)
        case RedisError() if isinstance(error, CONNECTION_ERRORS):
            return _answer_to_own(Unavailable("Redis can't be used right now; nothing is lost. Try again soon."))
        case OSError() if may_pass(error):
            return _answer_to_own(_of_storage(error))
    return None


def _of_storage(error: OSError) -> NoRoom | Unavailable:
    if is_full(error):
        return NoRoom(f"The cluster's volume takes no more: {error.strerror}. Nothing was changed.")
    return Unavailable(f"The storage can't be used right now: {error.strerror}.")


def _answer_to_own(error: ParallelRunError) -> _Answer:
    title = (type(error).__doc__ or "").strip().partition("\n")[0]
    entries = [
        ProblemEntry(pointer=visible(p.pointer), message=visible(p.message), hint=visible(p.hint) or None)
        for p in error.problems
    ]
    headers = dict(error.headers) if isinstance(error, HttpError) else {}
    if error.retryable:
        headers.setdefault("Retry-After", RETRY_AFTER_S)
    if isinstance(error, Unauthorized):
        headers["WWW-Authenticate"] = 'Bearer realm="parallelrun"'
    return _Answer(_problem(error.http_status, error.code, title, visible(error.message), errors=entries), headers)


def _of_http(error: HTTPException) -> _Answer:
    status = error.status_code
    if status == 404:
        return _answer_to_own(NotFound("No such endpoint; see docs/openapi.json."))
    title = HTTPStatus(status).phrase
    headers = {name: value for name, value in (error.headers or {}).items() if name.lower() != "content-type"}
    return _Answer(_problem(status, _CODES.get(status, f"http_{status}"), title, visible(str(error.detail))), headers)


def _of_parameter(details: dict[str, object]) -> ProblemEntry:
    where = details.get("loc") or ()
    pointer = "/" + "/".join(map(str, where)) if isinstance(where, tuple | list) else ""
    return ProblemEntry(pointer=visible(pointer), message=visible(message_of(details)))
