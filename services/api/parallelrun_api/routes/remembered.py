"""Remembered answers of a job, which its scripts keep for later tries: list and delete them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.answers import encoded, encoded_answer, json_answer
from parallelrun_api.http.paging import DEFAULT_LIMIT, Limit, PathToken, clamped
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_api.submission.forgetting import forget
from parallelrun_api.views.remembered import remembered
from parallelrun_core.answers.remembered import Forgotten, RememberedPage
from parallelrun_core.errors import Conflict
from parallelrun_core.folder.job_folder import JobFolder

router = Operations("jobs")


@router.operation(
    "GET /jobs/{job_id:job}/remembered", "List remembered answers", RememberedPage, (404, 409, 429), reads="outputs"
)
async def list_remembered(
    job_id: JobId,
    context: Ctx,
    *,
    text: Annotated[str, Query(max_length=1024, description="Only keys with this in them.")] = "",
    limit: Limit = DEFAULT_LIMIT,
    page_token: PathToken = "",
) -> Response:
    """Answers that entry scripts have remembered, with `remember()`, each with its key and the file that has it; also
    while the job runs, and those that it has taken over from another one. A page may have fewer items than `limit`; the
    last one has no `next_page_token`. A pipeline has none (409): its steps have."""
    most = clamped(limit)
    key = (list_remembered, job_id, text, most, page_token)

    def answer() -> str:
        return encoded(remembered(_folder(context, job_id), text=text, limit=most, token=page_token))

    return encoded_answer(await context.long_lists.run(key, answer))


@router.operation(
    "DELETE /jobs/{job_id:job}/remembered", "Delete remembered answers", Forgotten, (403, 404, 409), "They are deleted."
)
def forget_remembered(
    job_id: JobId,
    context: Ctx,
    request: Request,
    key: Annotated[
        str | None, Query(max_length=1024, description="Only what was remembered under this key; not given: all.")
    ] = None,
) -> Response:
    """Delete what the scripts of a job that has ended have remembered, under one key or all of it: when the job is
    resumed, it is asked for again. What other jobs have taken over stays with them. One that has not ended remembers
    on, and is refused (409)."""
    forgotten = forget(_folder(context, job_id), context.registry, key)
    request.state.changed = {"answers": forgotten.count}
    return json_answer(forgotten)


def _folder(context: Context, job_id: str) -> JobFolder:
    """Return the folder of a job that may remember.

    Raises:
        NotFound: there is no such job.
        Conflict: it is a pipeline.
    """
    folder = context.jobs.folder(job_id)
    if folder.record().is_pipeline:
        raise Conflict(f"Job {job_id} is a pipeline: ask for what the job of one of its `steps` remembers.")
    return folder
