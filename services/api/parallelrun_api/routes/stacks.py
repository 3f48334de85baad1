"""Routes of the stacks of a running job's workers."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Final

from fastapi import Response
from pydantic import Field

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer
from parallelrun_api.models import Asked
from parallelrun_api.routes.files import logs_of
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_api.views.files import ServedFolder
from parallelrun_core.answers.answer import answer_of, rfc3339
from parallelrun_core.answers.stacks import NodeStacks, StacksAsked, StacksReport
from parallelrun_core.errors import Conflict
from parallelrun_core.folder.stacks import decode_stacks

router = Operations("jobs")

_MOST_FILES: Final = 2000
_MOST_BYTES: Final = 16 << 20
"""Of one; of all together, as of one: the rest is left out."""

_Name = Annotated[str, Field(max_length=255)]


class StacksWish(Asked):
    """Whose stacks are wanted."""

    node: _Name = ""
    """Only those of this node; empty: of all that work for the job."""
    process: _Name = ""
    """Only that of the worker of this name, such as `process000`; empty: of all of them."""


@router.operation(
    "POST /jobs/{job_id:job}:stacks",
    "Ask where the workers of a job are",
    StacksAsked,
    (400, 403, 404, 409),
    "They were asked. They answer within seconds; the job is not disturbed.",
    status=202,
)
def ask_for_stacks(job_id: JobId, context: Ctx, wish: StacksWish | None = None) -> Response:
    """Let the workers of a running job write down the stacks of their threads, also those that hang. A job for which no
    node works now, and one that runs a command, has none (409)."""
    wish = wish or StacksWish()
    spec = context.jobs.folder(job_id).record().spec
    if spec.get("command"):
        raise Conflict(f"Job {job_id} runs a command: no Python of ours is in its processes.")
    nodes = [node for node in context.job_views.nodes_at_work(job_id) if wish.node in ("", node)]
    if not nodes:
        where = f"node {wish.node!r} doesn't work" if wish.node else "no node works"
        raise Conflict(f"There is nothing to show: {where} for job {job_id} now.")
    request_id = context.nodes.ask_for_stacks(job_id, node=wish.node, process=wish.process)
    return json_answer(StacksAsked(id=request_id, nodes=nodes), 202)


@router.operation("GET /jobs/{job_id:job}/stacks", "Show where the workers of a job were", StacksReport, (404, 429))
async def show_stacks(job_id: JobId, context: Ctx) -> Response:
    """Return what each node has answered to the last `:stacks` that it has heard of."""
    key = (show_stacks, job_id)
    return await context.long_lists.answer(key, lambda: _report(logs_of(context, job_id, "/sys/stacks")))


def _report(served: ServedFolder) -> StacksReport:
    """Return what all nodes say, by node. What isn't an answer of a node, or is gone, is left out."""
    items: list[NodeStacks] = []
    remaining_bytes = _MOST_BYTES
    for entry in islice(served.files(), _MOST_FILES):
        text = served.head(entry.path, remaining_bytes)
        remaining_bytes -= len(text)
        node_stacks = decode_stacks(text)
        if node_stacks is not None:
            items.append(answer_of(NodeStacks, node_stacks, at=rfc3339(node_stacks.at)))
    return StacksReport(items=items)
