"""The nodes of the cluster."""

from __future__ import annotations

from fastapi import APIRouter, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer
from parallelrun_api.models import Node, NodeList
from parallelrun_api.routes.responses import problems
from parallelrun_api.views.shown import rfc3339
from parallelrun_core.states import NodeState
from parallelrun_core.store.nodes import NodeInfo

router = APIRouter(prefix="/v1", tags=["nodes"])


@router.get("/nodes", summary="List nodes", response_model=NodeList, responses=problems())
def list_nodes(context: Ctx) -> Response:
    """All known nodes, by name. A `lost` one has been silent for longer than its lease."""
    return json_answer(NodeList(items=[_node(info, is_alive) for info, is_alive in context.nodes.all()]))


def _node(info: NodeInfo, is_alive: bool) -> Node:
    return Node(
        node=info.node,
        host=info.host,
        slots=info.slots,
        busy=info.busy if is_alive else 0,
        state=info.state if is_alive else NodeState.LOST,
        version=info.version,
        started=rfc3339(info.started),
        jobs=info.jobs if is_alive else [],
        workers_apart=info.workers_apart,
        memory_bytes=info.memory_bytes,
        disk_free_bytes=info.disk_free_bytes,
        clock_ahead_s=info.clock_ahead_s if is_alive else 0.0,
    )
