"""The status of each mini-batch."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.answers import encoded_answer
from parallelrun_api.http.paging import DEFAULT_LIMIT, Limit, PageToken, clamped
from parallelrun_api.models import MiniBatchPage
from parallelrun_api.routes.responses import JobId, problems
from parallelrun_api.views.mini_batches import Page, Status, decided, ready, running
from parallelrun_core.errors import Conflict
from parallelrun_core.masking import Mask

router = APIRouter(prefix="/v1", tags=["jobs"])


@router.get(
    "/jobs/{job_id:job}/mini-batches",
    summary="List mini-batches",
    response_model=MiniBatchPage,
    responses=problems(404, 409, 429),
)
async def list_mini_batches(
    job_id: JobId,
    context: Ctx,
    status: Annotated[Status | None, Query(description="By default the decided ones: done and failed.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    page_token: PageToken = "",
) -> Response:
    """A job's mini-batches: decided ones in the order of their decisions, `running` and `ready` ones as they are now. A
    page may have fewer items than `limit`; the last one has no `next_page_token`. A pipeline has none (409): its steps
    have."""
    wanted = Page(limit=clamped(limit), token=page_token)
    key = (list_mini_batches, job_id, status, wanted)
    return encoded_answer(await context.long_lists.run(key, lambda: _page(context, job_id, status, wanted)))


def _page(context: Context, job_id: str, status: Status | None, wanted: Page) -> str:
    folder = context.jobs.folder(job_id)
    record = folder.record()
    if record.is_pipeline:
        raise Conflict(f"Job {job_id} is a pipeline: ask for the mini-batches of the job of one of its `steps`.")
    match status:
        case "running":
            answer = running(context.job_views, job_id, wanted)
        case "ready":
            answer = ready(context.job_views, job_id, wanted)
        case _:
            answer = decided(folder.path, Mask(record.spec), status, wanted)
    return answer.model_dump_json()
