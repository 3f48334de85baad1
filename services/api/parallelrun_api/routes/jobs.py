"""Submit, show, list and cancel jobs."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from typing import Annotated, Any, Final

import msgspec
from anyio.to_thread import run_sync
from fastapi import Depends, Header, Query, Request, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.answers import encoded, encoded_answer, json_answer
from parallelrun_api.http.paging import (
    DEFAULT_LIMIT,
    Limit,
    PageToken,
    clamped,
    decode_numbers,
    encode_token,
    page_answer,
)
from parallelrun_api.routes.job_queries import job_filter_of, job_query
from parallelrun_api.routes.responses import JobId, TraceParent, document_body, zip_form
from parallelrun_api.routes.router import Operations
from parallelrun_api.routes.submitting import IdempotencyKey, accepted
from parallelrun_api.submission.idempotency import checked_key
from parallelrun_api.submission.submissions import Accepted
from parallelrun_api.submission.upload import receive_upload
from parallelrun_api.views.job_search import JobQuery
from parallelrun_api.views.jobs import JobFilter
from parallelrun_api.views.presenters import etag, matches
from parallelrun_core.answers.job_summaries import JobSummaryPage
from parallelrun_core.answers.jobs import Job, JobPage
from parallelrun_core.layout import code_store

router = Operations("jobs", about="Submit, follow, cancel.")

LONGEST_WAIT_S: Final = 60.0

_EXAMPLE_YAML: Final = """\
name: digits
entry_script: digits.py
code: /srv/digits/code
inputs: {images: /srv/digits/images}
mini_batch_size: 50
output_action: append_row
"""
_SPEC: Final[dict[str, Any]] = {
    "anyOf": [
        {"$ref": "#/components/schemas/JobSpec"},
        {"$ref": "#/components/schemas/PipelineSpec"},
        {
            "title": "A v2 document of Azure ML",
            "description": "`type: pipeline`, `parallel` or `command`; see docs/compatibility.md.",
            "type": "object",
            "required": ["type"],
            "properties": {"type": {"enum": ["pipeline", "parallel", "command"]}},
        },
        {
            "title": "A batch deployment of Azure ML",
            "description": "With the data of an invocation as `inputs`; see docs/compatibility.md.",
            "type": "object",
            "required": ["endpoint_name", "inputs"],
            "properties": {"endpoint_name": {"type": "string"}, "inputs": {"type": "object"}},
        },
        {
            "title": "A v1 document of Azure ML",
            "description": "`parallel_run_config`, with the arguments of its step beside it.",
            "type": "object",
            "required": ["parallel_run_config"],
            "properties": {"parallel_run_config": {"type": "object"}},
        },
    ]
}
_SUBMIT_BODY: Final = document_body(
    _SPEC,
    "A job spec, or a form of a job spec and a zip of the code. All paths are paths on the server. Only in a form, a "
    "step of a pipeline may name a folder of the zip as its `code`.",
    example=("digits", _EXAMPLE_YAML),
    form=zip_form(
        "code",
        "A job spec without `code`, or a pipeline, as YAML or JSON.",
        "A zip of the folder with the entry script, or of those of all steps.",
    ),
)
_ETAG: Final = {"ETag": {"description": "Changes whenever the job does.", "schema": {"type": "string"}}}
_LOCATION: Final = {"Location": {"description": "The path of the job.", "schema": {"type": "string"}}}


def _from_headers(request: Request) -> dict[str, str | None]:
    headers = request.headers
    return {"key": checked_key(headers.get("idempotency-key")), "traceparent": headers.get("traceparent")}


@router.operation(
    "POST /jobs",
    "Submit a job",
    Job,
    (403, 409, 413, 415, 429, 507),
    "The job is accepted, durably.",
    status=202,
    others={202: {"headers": {**_LOCATION, **_ETAG}}},
    openapi_extra=_SUBMIT_BODY,
    arguments=_from_headers,
)
async def submit(
    request: Request,
    context: Ctx,
    key: IdempotencyKey,
    traceparent: TraceParent = None,
) -> Response:
    """Check a job spec, keep a copy of its code, and accept the job.

    A request that is refused leaves nothing behind. With an `Idempotency-Key` the request may be repeated safely; the
    same key with another body is refused (`idempotency_key_reused`), and a repeated request is answered with 409
    (`idempotency_key_in_flight`) while the first one takes very long.
    """
    settings = context.settings
    folder = code_store(settings.root)
    form = await receive_upload(request, max_bytes=settings.max_body_bytes, folder=folder)

    def accept(key: str) -> Accepted:
        return context.submissions.accept(form.parsed(context.assets.names), key, traceparent or "")

    with closing(form):
        return await accepted(context, key, accept)


@router.operation("GET /jobs", "List jobs", JobPage, (429,))
async def list_jobs(
    context: Ctx,
    job_filter: Annotated[JobFilter, Depends(job_filter_of)],
    *,
    limit: Limit = DEFAULT_LIMIT,
    page_token: PageToken = "",
) -> Response:
    """The newest jobs first, without those that are steps of pipelines or archived. A page may hold fewer than asked
    for; the last one has no `next_page_token`."""
    return await page_answer(
        context.job_lists,
        JobPage,
        ("jobs", job_filter),
        lambda before, most: context.jobs.page(job_filter, before=before, limit=most),
        limit=limit,
        page_token=page_token,
    )


@router.operation("GET /job-summaries", "Search jobs", JobSummaryPage, (429,))
async def search_jobs(
    context: Ctx,
    query: Annotated[JobQuery, Depends(job_query)],
    *,
    limit: Limit = DEFAULT_LIMIT,
    page_token: PageToken = "",
) -> Response:
    """Find jobs among all, each in short, with the number of them in each state."""
    offset, most = decode_numbers(page_token, "found", 1)[0] if page_token else 0, clamped(limit)

    def search() -> JobSummaryPage:
        page, following = context.job_search.page(query, offset=offset, limit=most)
        token = encode_token("found", following) if following is not None else None
        return msgspec.structs.replace(page, next_page_token=token)

    return await context.job_lists.answer((search_jobs, query, offset, most), search)


@router.operation(
    "GET /jobs/{job_id:job}",
    "Get a job",
    Job,
    (404, 429),
    others={200: {"headers": _ETAG}, 304: {"description": "Nothing has changed."}},
)
async def get_job(
    job_id: JobId,
    context: Ctx,
    wait: Annotated[
        float,
        Query(description="Seconds to wait for a change, at most 60.", allow_inf_nan=False),
    ] = 0.0,
    since: Annotated[int, Query(description="The `version` that the client has.")] = 0,
    if_none_match: Annotated[str | None, Header(description="The ETag that the client has.")] = None,
) -> Response:
    """Return one job. With `wait`, the answer comes once its `version` is above `since`, it has ended, or the time is
    over."""
    job, text = await run_sync(_encoded, context, job_id)
    if wait > 0 and job.version <= since and not await run_sync(context.jobs.has_ended, job_id):
        context.check_streams()
        await _wait_for_change(context, job_id, since, min(wait, LONGEST_WAIT_S))
        job, text = await run_sync(_encoded, context, job_id)
    tag = etag(job, text)
    if if_none_match is not None and matches(if_none_match, tag):
        return Response(status_code=304, headers={"ETag": tag, "Cache-Control": "no-store"})
    return encoded_answer(text, headers={"ETag": tag})


def _encoded(context: Context, job_id: str) -> tuple[Job, str]:
    job = context.with_waiting(context.jobs.get(job_id))
    return job, encoded(job)


async def _wait_for_change(context: Context, job_id: str, since: int, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    async with context.feeds.watch(job_id) as feed:
        while not context.stopping.is_set():
            bell = feed.bell
            left_s = deadline - time.monotonic()
            if feed.version > since or feed.ended or feed.trouble or left_s <= 0:
                return
            try:
                await asyncio.wait_for(bell.wait(), left_s)
            except TimeoutError:
                return


@router.operation(
    "POST /jobs/{job_id:job}:cancel",
    "Cancel a job",
    Job,
    (403, 404, 409),
    "The job is canceled, now or since earlier.",
    status=202,
)
def cancel(job_id: JobId, context: Ctx) -> Response:
    """Cancel a job. One whose output is being put together, or that has ended otherwise, can't be canceled (409)."""
    context.cancels.cancel(job_id)
    return json_answer(context.jobs.get(job_id), 202)
