"""Drafts of jobs: check one before it is submitted, and begin with the document of an earlier job."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

from anyio.to_thread import run_sync
from fastapi import Request, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.answers import json_answer
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_api.submission.upload import JSON_TYPE, YAML_TYPES, receive_upload
from parallelrun_api.views.drafts import document_of
from parallelrun_core.answers.drafts import JobCheck, JobDocument
from parallelrun_core.layout import code_store
from parallelrun_core.retention.marks import check_not_deleted
from parallelrun_core.spec import PipelineSpec

router = Operations("jobs")

_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {kind: {"schema": {"type": "object"}} for kind in (JSON_TYPE, *YAML_TYPES)},
    }
}


@router.operation("POST /jobs:check", "Check a job", JobCheck, (400, 403, 409, 413, 415), openapi_extra=_BODY)
async def check_job(request: Request, context: Ctx) -> Response:
    """Check a document as if it were submitted, but for its code, and make nothing of it."""
    settings = context.settings
    folder = code_store(settings.root)
    form = await receive_upload(request, max_bytes=settings.max_body_bytes, folder=folder)
    with closing(form):
        upload = await run_sync(form.parsed, context.assets.names)
        notes = await run_sync(context.submissions.check, upload)
    spec = upload.spec
    if isinstance(spec, PipelineSpec):
        return json_answer(JobCheck(type="pipeline", name=spec.name, notes=notes))
    return json_answer(JobCheck(type="command" if spec.command else "parallel", name=spec.name, notes=notes))


@router.operation("GET /jobs/{job_id:job}/document", "Get a document that makes such a job", JobDocument, (404, 409))
def show_document(job_id: JobId, context: Ctx) -> Response:
    """Return the settings that were given for a job, to be submitted again, with changes or without; of a pipeline,
    with all expressions resolved."""
    return json_answer(_document(context, job_id))


def _document(context: Context, job_id: str) -> JobDocument:
    folder = context.jobs.folder(job_id)
    check_not_deleted(folder)
    return document_of(folder.record())
