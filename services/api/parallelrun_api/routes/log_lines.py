"""Search in the logs of a job."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.paging import DEFAULT_LIMIT, Limit, PathToken, clamped
from parallelrun_api.routes.files import logs_of
from parallelrun_api.routes.responses import JobId, problems
from parallelrun_api.views.log_search import MAX_TEXT, Search, search
from parallelrun_core.answers.files import LogLines

router = APIRouter(prefix="/v1", tags=["files"])


@router.get(
    "/jobs/{job_id:job}/log-lines",
    summary="Search in logs",
    response_model=LogLines,
    responses=problems(404, 429),
)
async def search_logs(
    job_id: JobId,
    context: Ctx,
    *,
    text: Annotated[str, Query(min_length=1, max_length=MAX_TEXT, description="What the lines have in them.")],
    path: Annotated[str, Query(max_length=4096, description="Only logs whose paths begin like this.")] = "",
    any_case: Annotated[bool, Query(description="`a` is `A`, in ASCII.")] = False,
    limit: Limit = DEFAULT_LIMIT,
    page_token: PathToken = "",
) -> Response:
    """The lines of a job's logs that have a text, each with its number and the byte at which it begins. A page searches
    64 MiB, and no longer than half a second; so it may have no line, and still not be the last."""
    query = Search(text=text, is_any_case=any_case, within=path, limit=clamped(limit))
    key = (search_logs, job_id, query, page_token)
    return await context.pictures.answer(key, lambda: search(logs_of(context, job_id), query, page_token))
