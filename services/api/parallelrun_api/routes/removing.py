"""Archive, delete and restore jobs."""

from __future__ import annotations

from fastapi import Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer, no_content
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.jobs import Job

router = Operations("jobs")


@router.operation(
    "POST /jobs/{job_id:job}:archive", "Archive a job", Job, (403, 404, 409), "It is archived, now or since earlier."
)
def archive(job_id: JobId, context: Ctx) -> Response:
    """Hide a job from lists. It stays, and whoever names it finds it. Of a step, its pipeline can be archived (409)."""
    context.removals.archive(job_id)
    return json_answer(context.jobs.get(job_id))


@router.operation(
    "POST /jobs/{job_id:job}:restore", "Restore a job", Job, (403, 404, 409), "It is neither archived nor deleted."
)
def restore(job_id: JobId, context: Ctx) -> Response:
    """Take back that a job was archived or deleted; a deleted one can be restored for a day, or as long as the operator
    has set."""
    context.removals.restore(job_id)
    return json_answer(context.jobs.get(job_id))


@router.operation("DELETE /jobs/{job_id:job}", "Delete a job", None, (403, 404, 409), "It is deleted.")
def delete(job_id: JobId, context: Ctx) -> Response:
    """Delete a job that has ended, with its outputs, results and reports; of a pipeline, with the jobs of its steps.

    One that runs, or that something refers to, can't be deleted (409): a job that resumes from it or reads its outputs,
    a pipeline that has reused it, an asset or a schedule.
    """
    context.removals.delete(job_id)
    return no_content()
