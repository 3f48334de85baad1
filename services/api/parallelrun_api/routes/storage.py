"""Routes of a job's requests to object stores."""

from __future__ import annotations

from fastapi import APIRouter, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.answers import encoded, encoded_answer
from parallelrun_api.routes.responses import JobId, problems
from parallelrun_api.views.files import ServedFolder
from parallelrun_api.views.storage import storage_report
from parallelrun_core.answers.reports import StorageReport

router = APIRouter(prefix="/v1", tags=["jobs"])


@router.get(
    "/jobs/{job_id:job}/storage",
    summary="Show requests to object stores",
    response_model=StorageReport,
    responses=problems(404, 429),
)
async def show_storage(job_id: JobId, context: Ctx) -> Response:
    """Requests, bytes, latencies, failures and retries of a job by process, object store and operation; of a job that
    runs, as of the last time that they were written down."""
    key = (show_storage, job_id)
    return encoded_answer(await context.long_lists.run(key, lambda: encoded(_report(context, job_id))))


def _report(context: Context, job_id: str) -> StorageReport:
    folder = context.jobs.folder(job_id)
    folder.record()
    beneath = f"{job_id}/logs/sys/storage"
    return storage_report(ServedFolder(anchor=folder.path.parent, beneath=beneath, names=context.folder_names))
