"""The nodes of the cluster."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request, Response
from pydantic import Field

from parallelrun_api.context import Context, Ctx, access_check
from parallelrun_api.http.answers import json_answer
from parallelrun_api.models import RequestModel
from parallelrun_api.people.access import Subject
from parallelrun_api.people.person import seen_places
from parallelrun_api.routes.router import Operations
from parallelrun_api.views.node_usage import by_machine, summed
from parallelrun_core.answers.answer import answer_of, rfc3339
from parallelrun_core.answers.nodes import Node, NodeCheckAsked, NodeList, NodeUsage, UsageHistory, WorkForJob
from parallelrun_core.checks.stores import refusals
from parallelrun_core.problems import Problems
from parallelrun_core.spec.fields import MAX_PATH
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.store.nodes import MOST_PATHS, NodeInfo
from parallelrun_core.wire.states import NodeState

router = Operations("nodes", about="Where mini-batches run.")


class CheckRequest(RequestModel):
    """The paths that nodes check, beside themselves."""

    paths: list[Annotated[str, Field(min_length=1, max_length=MAX_PATH)]] = Field(default=[], max_length=MOST_PATHS)
    """Folders, files or URLs that jobs are to read."""


@router.operation("GET /nodes", "List nodes", NodeList)
def list_nodes(context: Ctx) -> Response:
    """All known nodes, by name. A `lost` one has been silent for longer than its lease. Of `jobs` and `work`, only what
    is of jobs that the person sees."""
    nodes = [_node(info, is_alive, context) for info, is_alive in context.nodes.all()]
    hosts = by_machine((each.host, each.usage) for each in nodes if each.usage is not None)
    return json_answer(NodeList(items=nodes, total=summed([*hosts.values()]) if hosts else None))


@router.operation(
    "POST /nodes:check",
    "Let all nodes check themselves",
    NodeCheckAsked,
    (400, 403),
    "They were asked. Each that has answered shows it as its `check`, for a minute.",
    status=202,
    access=access_check(is_read=True),
)
def check_nodes(context: Ctx, request: CheckRequest | None = None) -> Response:
    """Let each node find out what `parallelrun doctor` says of the machine that it runs on, and whether it can read
    these paths with its own credentials."""
    paths = (request or CheckRequest()).paths
    Problems([*refusals(paths, PathRule(context.settings.root, seen_places(context.settings.places)))]).check()
    return json_answer(NodeCheckAsked(id=context.nodes.ask_to_check(paths)), 202)


@router.operation(
    "POST /nodes/{node}:drain",
    "Drain a node",
    Node,
    (403, 404),
    "It is asked to leave, as with the next heartbeat.",
    status=202,
)
def drain_node(
    node: Annotated[str, Path(description="Name of a node.", max_length=MAX_PATH)], request: Request, context: Ctx
) -> Response:
    """Let a node finish what it runs, return the rest to the queue, and end, as after SIGTERM: before its machine is
    updated or switched off. An agent that is started again under its name works, and a compute gets another node where
    its jobs need one. Only the server's own token, and those that it names as operators, may (403)."""
    context.operators.check(request.state.token_name)
    return json_answer(_node(context.nodes.drain(node), True, context), 202)


def _usage(info: NodeInfo) -> NodeUsage | None:
    measured = info.usage
    if measured is None:
        return None
    gpus = [gpu for gpu in info.gpus if gpu.utilization is not None]
    with_memory = [gpu for gpu in info.gpus if gpu.memory_used_bytes is not None and gpu.memory_bytes is not None]
    times = [measured.at - measured.history_s * back for back in range(len(measured.cpu_history))]
    return answer_of(
        NodeUsage,
        measured,
        memory_bytes=info.memory_bytes,
        gpus=len(info.gpus),
        gpu=sum(gpu.utilization or 0.0 for gpu in gpus) / len(gpus) if gpus else None,
        gpu_memory_used_bytes=sum(gpu.memory_used_bytes or 0 for gpu in with_memory) if with_memory else None,
        gpu_memory_bytes=sum(gpu.memory_bytes or 0 for gpu in with_memory) if with_memory else None,
        at=rfc3339(measured.at),
        history=UsageHistory(
            at=[rfc3339(time) for time in reversed(times)],
            cpu=[percent / 100 for percent in measured.cpu_history],
            memory=[percent / 100 for percent in measured.memory_history],
        ),
    )


def _work(job: str, workers: int, context: Context) -> WorkForJob:
    owner = context.access.owner_of(Subject("job", job)) or ""
    return WorkForJob(job=job, name=context.jobs.name_of(job), workers=workers, owner=owner)


def _node(info: NodeInfo, is_alive: bool, context: Context) -> Node:
    sees_job = context.access.sees_job
    workers = {job: busy for job, busy in info.workers.items() if sees_job(job)} if is_alive else {}
    return answer_of(
        Node,
        info,
        busy=info.busy if is_alive else 0,
        state=info.state if is_alive else NodeState.LOST,
        started=rfc3339(info.started),
        jobs=[job for job in info.jobs if sees_job(job)] if is_alive else [],
        work=[_work(job, busy, context) for job, busy in sorted(workers.items()) if busy],
        clock_ahead_s=info.clock_ahead_s if is_alive else 0.0,
        ends_at=rfc3339(info.ends_at) if info.ends_at else None,
        pressure=info.pressure if is_alive else None,
        gpus=info.gpus if is_alive else [],
        usage=_usage(info) if is_alive else None,
        check=info.check if is_alive else None,
    )
