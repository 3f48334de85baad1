"""For operators of the server: liveness, readiness and metrics."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable
from typing import Any, Final

from fastapi import Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer
from parallelrun_api.routes.responses import content
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.cluster import Health
from parallelrun_core.store.connection import RedisError

router = Operations("operations", "", about="For those who run the server.", is_open=True)

_PATIENCE_S: Final = 3.0
_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_OPEN: Final[dict[str, Any]] = {"security": []}


@router.route("GET /livez", summary="Is it alive?", response_model=Health, openapi_extra=_OPEN)
async def livez() -> Response:
    """The process runs and answers. Needs no token."""
    return json_answer(Health(status="ok"))


@router.route(
    "GET /readyz",
    summary="Is it ready?",
    response_model=Health,
    responses={503: {"model": Health, "description": "It isn't."}},
    openapi_extra=_OPEN,
)
async def readyz(context: Ctx) -> Response:
    """Redis answers and the root folder can be written. Needs no token."""
    root = context.settings.root
    checks = {
        "redis": await _outcome(context.feeds.ping()),
        "root": await _outcome(context.probes.run("root", lambda: _write_in(str(root)))),
    }
    is_well = set(checks.values()) == {"ok"}
    return json_answer(Health(status="ok" if is_well else "unavailable", checks=checks), 200 if is_well else 503)


@router.operation(
    "GET /metrics",
    "Measurements",
    None,
    others=content("text/plain", "Prometheus."),
    openapi_extra={"security": [{}, {"token": []}]},
)
async def metrics(context: Ctx) -> Response:
    """Prometheus' text format. Needs no token on a loopback address."""
    return Response(await context.scrapes.run("metrics", context.metrics.text), media_type=_METRICS_TYPE)


async def _outcome(check: Awaitable[object]) -> str:
    try:
        await asyncio.wait_for(check, _PATIENCE_S)
    except TimeoutError:
        return "no answer in time"
    except (RedisError, OSError) as error:
        return type(error).__name__  # its text may have addresses in it, and this answer needs no token
    return "ok"


def _write_in(folder: str) -> None:
    with tempfile.TemporaryFile(dir=folder):
        pass
