"""The nodes of the cluster."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Response
from pydantic import Field

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.answers import json_answer
from parallelrun_api.models import Asked
from parallelrun_api.routes.responses import problems
from parallelrun_api.views.shown import rfc3339
from parallelrun_core.answers.nodes import Node, NodeCheck, NodeCheckAsked, NodeGpu, NodeList, NodePressure, WorkForJob
from parallelrun_core.checks.stores import refusals
from parallelrun_core.problems import Problems
from parallelrun_core.spec.fields import MAX_PATH
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.store.nodes import MOST_PATHS, CheckAnswer, NodeInfo
from parallelrun_core.wire.finding import Finding
from parallelrun_core.wire.states import NodeState

router = APIRouter(prefix="/v1", tags=["nodes"])


class CheckRequest(Asked):
    """The paths that nodes check, beside themselves."""

    paths: list[Annotated[str, Field(min_length=1, max_length=MAX_PATH)]] = Field(default=[], max_length=MOST_PATHS)
    """Folders, files or URLs that jobs are to read."""


@router.get("/nodes", summary="List nodes", response_model=NodeList, responses=problems())
def list_nodes(context: Ctx) -> Response:
    """All known nodes, by name. A `lost` one has been silent for longer than its lease. Of `jobs` and `work`, only what
    is of jobs that the person sees."""
    return json_answer(NodeList(items=[_node(info, is_alive, context) for info, is_alive in context.nodes.all()]))


@router.post(
    "/nodes:check",
    summary="Let all nodes check themselves",
    status_code=202,
    response_model=NodeCheckAsked,
    response_description="They were asked. Each that has answered shows it as its `check`, for a minute.",
    responses=problems(400, 403),
)
def check_nodes(context: Ctx, request: CheckRequest | None = None) -> Response:
    """Let each node find out what `parallelrun doctor` says of the machine that it runs on, and whether it can read
    these paths with its own credentials."""
    paths = (request or CheckRequest()).paths
    Problems([*refusals(paths, PathRule(context.settings.root, context.settings.places))]).check()
    return json_answer(NodeCheckAsked(id=context.nodes.ask_to_check(paths)), 202)


def _check(answer: CheckAnswer) -> NodeCheck:
    items = [Finding(level=each.level, what=each.what, todo=each.todo) for each in answer.findings]
    return NodeCheck(id=answer.id, findings=items)


def _pressure(info: NodeInfo) -> NodePressure | None:
    pressure = info.pressure
    return NodePressure(of=pressure.of, cpu=pressure.cpu, io=pressure.io, memory=pressure.memory) if pressure else None


def _node(info: NodeInfo, is_alive: bool, context: Context) -> Node:
    name_of, sees_job = context.jobs.name_of, context.access.sees_job
    workers = {job: busy for job, busy in info.workers.items() if sees_job(job)} if is_alive else {}
    return Node(
        node=info.node,
        host=info.host,
        slots=info.slots,
        busy=info.busy if is_alive else 0,
        state=info.state if is_alive else NodeState.LOST,
        version=info.version,
        started=rfc3339(info.started),
        jobs=[job for job in info.jobs if sees_job(job)] if is_alive else [],
        work=[WorkForJob(job=job, name=name_of(job), workers=busy) for job, busy in sorted(workers.items()) if busy],
        workers_apart=info.workers_apart,
        memory_bytes=info.memory_bytes,
        disk_free_bytes=info.disk_free_bytes,
        clock_ahead_s=info.clock_ahead_s if is_alive else 0.0,
        compute=info.compute,
        ends_at=rfc3339(info.ends_at) if info.ends_at else None,
        pressure=_pressure(info) if is_alive else None,
        gpus=[NodeGpu(**msgspec.structs.asdict(gpu)) for gpu in info.gpus] if is_alive else [],
        check=_check(info.check) if is_alive and info.check is not None else None,
    )
