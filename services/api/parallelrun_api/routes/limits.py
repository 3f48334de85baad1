"""Limits of a cluster: how often its jobs may call a service that somebody else runs."""

from __future__ import annotations

from typing import Final

from fastapi import Path

from parallelrun_api.routes.definition_routes import DefinitionRoutes
from parallelrun_api.routes.responses import document_body
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.cluster import RateLimit, RateLimitList
from parallelrun_core.limits.definition import Limit
from parallelrun_core.names.patterns import LIMIT_NAME

router = Operations("limits", about="What all jobs together may ask of one service.")

_SCHEMA: Final = {"$ref": "#/components/schemas/Limit"}
_EXAMPLE_YAML: Final = "requests_per_minute: 3000\ntokens_per_minute: 2000000\nin_flight: 200\n"
_BODY: Final = document_body(_SCHEMA, "A definition; `name` may be left out.", example=("api", _EXAMPLE_YAML))


def _shown(limit: Limit) -> RateLimit:
    return RateLimit(**limit.model_dump())


DefinitionRoutes(
    path="/limits",
    noun="limit",
    name=Path(alias="limit", description="Name of a limit.", pattern=LIMIT_NAME, examples=["openai"]),
    models=(RateLimit, RateLimitList),
    service=lambda context: context.limits,
    answer=_shown,
    texts=(
        "All limits, by name.",
        "Return one limit.",
        "Define a limit, durably, or define it anew; jobs that run keep to it within seconds.",
        "Forget a limit. Calls of jobs that wait for it are refused from then on.",
    ),
    removed="It is gone.",
    body=_BODY,
).add_to(router)
