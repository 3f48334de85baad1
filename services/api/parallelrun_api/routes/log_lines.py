"""The lines of a job's logs: search in them, and all of them merged by time."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.paging import DEFAULT_LIMIT, Limit, PathToken, clamped
from parallelrun_api.routes.files import logs_of
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_api.views.log_search import MAX_TEXT, Search, search
from parallelrun_api.views.merged_logs import Merge, merged_lines
from parallelrun_core.answers.files import LogLines
from parallelrun_core.answers.merged_logs import MergedLines

router = Operations("files")


@router.operation("GET /jobs/{job_id:job}/log-lines", "Search in logs", LogLines, (404, 429))
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


_Level = Annotated[
    Literal["", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"],
    Query(description="The least level. What was printed without one counts as INFO, on stderr as WARNING."),
]


@router.operation("GET /jobs/{job_id:job}/merged-logs", "Read the logs of all workers by time", MergedLines, (404, 429))
async def read_merged_logs(
    job_id: JobId,
    context: Ctx,
    *,
    source: Annotated[Literal["yours", "all"], Query(description="Only what the script says, or all.")] = "yours",
    level: _Level = "",
    worker: Annotated[str, Query(max_length=600, description="A node, or `node/process`.")] = "",
    mini_batch: Annotated[int | None, Query(ge=0, description="What was said while this one ran.")] = None,
    order: Annotated[
        Literal["oldest", "newest"], Query(description="Pages from the begin, or from the end.")
    ] = "oldest",
    limit: Annotated[int, Query(ge=1, le=1000, description="The most lines of a page.")] = 200,
    page_token: PathToken = "",
) -> Response:
    """The lines that the workers of a job have printed and logged, by time. A page reads one block of each log,
    16 MiB of all; with filters it may have no line, and still not be the last. Of commands, and of jobs of earlier
    releases, nothing says when they have printed what (`has_time`)."""
    merge = Merge(
        yours=source == "yours",
        level=level,
        worker=worker,
        mini_batch=mini_batch,
        newest=order == "newest",
        limit=limit,
    )
    key = (read_merged_logs, job_id, merge, page_token)
    return await context.pictures.answer(key, lambda: merged_lines(logs_of(context, job_id), merge, page_token))
