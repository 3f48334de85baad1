"""The status of each mini-batch."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer
from parallelrun_api.http.paging import DEFAULT_LIMIT, Limit, PageToken, clamped
from parallelrun_api.models import MiniBatchPage
from parallelrun_api.routes.responses import JobId, problems
from parallelrun_api.views.mini_batches import Page, Status, decided, ready, running
from parallelrun_core.masking import Mask

router = APIRouter(prefix="/v1", tags=["jobs"])


@router.get(
    "/jobs/{job_id:job}/mini-batches",
    summary="List mini-batches",
    response_model=MiniBatchPage,
    responses=problems(404),
)
def list_mini_batches(
    job_id: JobId,
    context: Ctx,
    status: Annotated[Status | None, Query(description="By default the decided ones: done and failed.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    page_token: PageToken = "",
) -> Response:
    """A job's mini-batches: decided ones in the order of their decisions, `running` and `ready` ones as they are now. A
    page may have fewer items than `limit`; the last one has no `next_page_token`."""
    folder = context.jobs.folder(job_id)
    record = folder.record()
    page = Page(limit=clamped(limit), token=page_token)
    match status:
        case "running":
            answer = running(context.job_views, job_id, page)
        case "ready":
            answer = ready(context.job_views, job_id, page)
        case _:
            answer = decided(folder.path, Mask(record.spec), status, page)
    return json_answer(answer)
