"""What the nodes of a job use, side by side."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import encoded, encoded_answer
from parallelrun_api.routes.files import logs_of
from parallelrun_api.routes.responses import JobId, problems
from parallelrun_api.views.node_usage import MOST_NODES, node_usage
from parallelrun_core.answers.node_usage import NodeUsageReport

router = APIRouter(prefix="/v1", tags=["jobs"])

_Limit = Annotated[int, Query(ge=1, le=MOST_NODES, description="The most nodes that are listed.")]


@router.get(
    "/jobs/{job_id:job}/node-usage",
    summary="Show what the nodes of a job use",
    response_model=NodeUsageReport,
    responses=problems(404, 429),
)
async def show_node_usage(job_id: JobId, context: Ctx, limit: _Limit = 100) -> Response:
    """CPU, memory, GPUs, disk and network of each node that has worked for a job, when it was measured last, with the
    last 60 measurements, and of all together. `resource_monitor_interval` of the job says how often nodes measure. Each
    node counts with all that runs there, also for other jobs."""

    def answer() -> str:
        return encoded(node_usage(logs_of(context, job_id), limit))

    return encoded_answer(await context.pictures.run((show_node_usage, job_id, limit), answer))
