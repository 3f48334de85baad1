"""For operators: the disk usage by kind and job, and pruning by the rules of retention."""

from __future__ import annotations

import time

import msgspec
from anyio.to_thread import run_sync
from fastapi import Request, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer
from parallelrun_api.models import RequestModel
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.retention import ClusterUsage, Sweep
from parallelrun_core.retention.report import sweep_of
from parallelrun_core.retention.requests import request_sweep, rules_of
from parallelrun_core.retention.rules import Rules
from parallelrun_core.retention.sizes import usage_of
from parallelrun_core.retention.sweep import Sweeper

router = Operations("operations", "/v1/admin")


class Prune(RequestModel):
    """A request to remove what retention doesn't keep."""

    dry_run: bool = False
    """Only say what would be removed."""


@router.operation("GET /usage", "What takes the room?", ClusterUsage, (403, 429))
async def get_usage(request: Request, context: Ctx) -> Response:
    """Measure the root folder, by kind and by job. Who may is as for defining computes."""
    context.operators.check(request.state.token_name)
    root = context.settings.root
    return json_answer(await context.long_lists.run("usage", lambda: usage_of(root)))


@router.operation(
    "POST :prune",
    "Remove what retention doesn't keep",
    Sweep,
    (400, 403),
    "What would be removed; with `dry_run`, nothing is.",
    others={202: {"model": Sweep, "description": "A master removes it."}},
)
async def prune(request: Request, context: Ctx, wish: Prune | None = None) -> Response:
    """Plan a sweep by the rules of the masters, and have a master do it. Jobs that were deleted go, too, though they
    could still be restored. Who may is as for defining computes."""
    context.operators.check(request.state.token_name)
    root, is_dry_run = context.settings.root, wish is not None and wish.dry_run
    planned = await run_sync(lambda: Sweeper(root, rules_of(root) or Rules()).plan(is_urgent=True))
    if not is_dry_run:
        await run_sync(request_sweep, root, time.time())
    return json_answer(sweep_of(msgspec.structs.replace(planned, is_applied=False)), 200 if is_dry_run else 202)
