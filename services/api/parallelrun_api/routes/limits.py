"""Limits of a cluster: how often its jobs may call a service that somebody else runs."""

from __future__ import annotations

from typing import Annotated, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Request, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer, no_content
from parallelrun_api.routes.responses import defined, document_body, problems
from parallelrun_api.submission.upload import read_document
from parallelrun_core.answers.cluster import RateLimit, RateLimitList
from parallelrun_core.limits.definition import NAME_PATTERN, Limit

router = APIRouter(prefix="/v1", tags=["limits"])

_SCHEMA: Final = {"$ref": "#/components/schemas/Limit"}
_EXAMPLE_YAML: Final = "requests_per_minute: 3000\ntokens_per_minute: 2000000\nin_flight: 200\n"
_BODY: Final = document_body(_SCHEMA, "A definition; `name` may be left out.", example=("api", _EXAMPLE_YAML))
Name = Annotated[str, Path(description="Name of a limit.", pattern=NAME_PATTERN, examples=["openai"])]


@router.get("/limits", summary="List limits", response_model=RateLimitList, responses=problems())
def list_limits(context: Ctx) -> Response:
    """All limits, by name."""
    return json_answer(RateLimitList(items=[_shown(each) for each in context.limits.all()]))


@router.get("/limits/{limit}", summary="Get a limit", response_model=RateLimit, responses=problems(404))
def get_limit(limit: Name, context: Ctx) -> Response:
    """Return one limit."""
    return json_answer(_shown(context.limits.get(limit)))


@router.put(
    "/limits/{limit}",
    summary="Define a limit",
    response_model=RateLimit,
    response_description="It is defined anew.",
    responses=defined(RateLimit),
    openapi_extra=_BODY,
)
async def put_limit(limit: Name, request: Request, context: Ctx) -> Response:
    """Define a limit, durably, or define it anew; jobs that run keep to it within seconds."""
    document = await read_document(request)
    defined, is_new = await run_sync(context.limits.put, limit, document)
    return json_answer(_shown(defined), 201 if is_new else 200)


@router.delete(
    "/limits/{limit}",
    summary="Delete a limit",
    status_code=204,
    response_class=Response,
    response_description="It is gone.",
    responses=problems(403, 404),
)
def delete_limit(limit: Name, context: Ctx) -> Response:
    """Forget a limit. Calls of jobs that wait for it are refused from then on."""
    context.limits.remove(limit)
    return no_content()


def _shown(limit: Limit) -> RateLimit:
    return RateLimit(**limit.model_dump())
