"""Every error becomes a problem with the status and code that it stands for."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.exceptions import HTTPException

from parallelrun_api.app import create_app
from parallelrun_api.azure.answers import NotSupported
from parallelrun_api.azure.blobs.routes import AlreadyThere
from parallelrun_api.azure.blobs.store import OverQuota
from parallelrun_api.context import build_context
from parallelrun_api.http import errors as http_errors
from parallelrun_api.http.token import Token
from parallelrun_api.people.access import NotAllowed
from parallelrun_api.people.quotas import QuotaExceeded
from parallelrun_api.settings import ApiSettings
from parallelrun_core import errors
from parallelrun_core.azure.scope import DocumentTooLarge
from parallelrun_core.names.assets import UnknownAsset, UnknownVersion
from parallelrun_core.pipelines.outputs import SkippedOutput
from parallelrun_core.store.connection import ServerUnable
from parallelrun_core.untrusted.document import RepeatedKeys


def leaves(root: type[errors.ParallelRunError]) -> Iterator[type[errors.ParallelRunError]]:
    for kind in root.__subclasses__():
        if kind.__module__.startswith(("parallelrun_core", "parallelrun_api")):
            yield kind
            yield from leaves(kind)


OURS = sorted(set(leaves(errors.ParallelRunError)), key=lambda kind: kind.__name__)

# What each stands for, written out once more: a change of either is a change of the contract.
EXPECTED = {
    NotSupported: (501, "not_supported"),
    AlreadyThere: (409, "conflict"),
    OverQuota: (413, "over_quota"),
    QuotaExceeded: (429, "quota_exceeded"),
    errors.InvalidInput: (422, "invalid_input"),
    errors.UnsafePath: (422, "unsafe_path"),
    RepeatedKeys: (422, "invalid_input"),
    errors.Unauthorized: (401, "unauthorized"),
    errors.NotFound: (404, "not_found"),
    SkippedOutput: (404, "not_found"),
    DocumentTooLarge: (422, "invalid_input"),
    UnknownAsset: (404, "unknown_asset"),
    UnknownVersion: (404, "unknown_version"),
    errors.Conflict: (409, "conflict"),
    errors.Unavailable: (503, "unavailable"),
    errors.NoRoom: (507, "no_room"),
    errors.NewerSchema: (409, "newer_schema"),
    errors.CorruptLog: (500, "corrupt_log"),
    errors.Fenced: (409, "fenced"),
    http_errors.HttpError: (500, "internal_error"),
    http_errors.Forbidden: (403, "cross_origin"),
    NotAllowed: (403, "not_allowed"),
    http_errors.NotAnOperator: (403, "not_an_operator"),
    http_errors.KeyInFlight: (409, "idempotency_key_in_flight"),
    http_errors.BodyTooLarge: (413, "body_too_large"),
    http_errors.UnsupportedMediaType: (415, "unsupported_media_type"),
    http_errors.RangeNotSatisfiable: (416, "range_not_satisfiable"),
    http_errors.Misdirected: (421, "misdirected"),
    http_errors.KeyReused: (422, "idempotency_key_reused"),
    http_errors.TooManyReads: (429, "too_many_reads"),
    http_errors.TooManyStreams: (429, "too_many_streams"),
    http_errors.Crowded: (503, "crowded"),
}

OTHERS: list[tuple[Exception, int, str]] = [
    (redis.ConnectionError("no"), 503, "unavailable"),
    (redis.TimeoutError("no"), 503, "unavailable"),
    (ServerUnable("MISCONF can't write"), 503, "unavailable"),
    (redis.ResponseError("ERR unknown command"), 500, "internal_error"),
    (OSError(errno.ENOSPC, "No space left on device"), 507, "no_room"),
    (OSError(errno.EROFS, "Read-only file system"), 503, "unavailable"),
    (OSError(errno.EACCES, "Permission denied"), 500, "internal_error"),
    (HTTPException(404), 404, "not_found"),
    (HTTPException(405), 405, "method_not_allowed"),
    (HTTPException(418), 418, "http_418"),
    (ZeroDivisionError("inner workings"), 500, "internal_error"),
]


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    return make_app(tmp_path)


def make_app(tmp_path: Path) -> FastAPI:
    """The API, without a Redis that it could ask."""
    settings = ApiSettings(root=tmp_path, redis_url=f"unix://{tmp_path}/nothing.sock")
    return create_app(build_context(settings), Token())


def answer_to(app: FastAPI, error: Exception) -> Any:
    def fail() -> None:
        raise error

    app.add_api_route("/fail", fail)
    app.router.routes.insert(0, app.router.routes.pop())  # before the one for all others
    with TestClient(app, base_url="http://localhost") as client:
        return client.get("/fail")


@pytest.mark.parametrize("kind", OURS)
def test_our_own(kind: type[errors.ParallelRunError], app: FastAPI) -> None:
    status, code = EXPECTED[kind]

    answer = answer_to(app, kind("what happened"))

    problem = answer.json()
    assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["detail"] == "what happened"
    assert problem["title"] == (kind.__doc__ or "").strip().partition("\n")[0]
    assert ("retry-after" in answer.headers) == kind.retryable


@pytest.mark.parametrize("error, status, code", OTHERS, ids=[str(error) for error, _, _ in OTHERS])
def test_those_of_others(error: Exception, status: int, code: str, app: FastAPI) -> None:
    answer = answer_to(app, error)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert "inner workings" not in answer.text


def test_all_wrong_fields_are_listed(app: FastAPI) -> None:
    problems = (
        errors.Problem(pointer="/a", message="wrong", hint="try b"),
        errors.Problem(pointer="/c", message="half a character: \ud800"),
    )

    found = answer_to(app, errors.InvalidInput(problems=problems)).json()

    assert found["errors"] == [
        {"pointer": "/a", "message": "wrong", "hint": "try b"},
        {"pointer": "/c", "message": "half a character: \\ud800"},
    ]
    assert found["detail"] == "/a: wrong (try b); /c: half a character: \\ud800"


def test_errors_say_what_to_do_about_tokens(app: FastAPI) -> None:
    assert answer_to(app, errors.Unauthorized()).headers["www-authenticate"] == 'Bearer realm="parallelrun"'
