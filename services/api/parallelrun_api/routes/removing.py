"""Archive, delete and restore jobs."""

from __future__ import annotations

from fastapi import APIRouter, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer, no_content
from parallelrun_api.routes.responses import JobId, problems
from parallelrun_core.answers.jobs import Job

router = APIRouter(prefix="/v1", tags=["jobs"])


@router.post(
    "/jobs/{job_id:job}:archive",
    summary="Archive a job",
    response_model=Job,
    response_description="It is archived, now or since earlier.",
    responses=problems(403, 404, 409),
)
def archive(job_id: JobId, context: Ctx) -> Response:
    """Hide a job from lists. It stays, and whoever names it finds it. Of a step, its pipeline can be archived (409)."""
    context.removals.archive(job_id)
    return json_answer(context.jobs.get(job_id))


@router.post(
    "/jobs/{job_id:job}:restore",
    summary="Restore a job",
    response_model=Job,
    response_description="It is neither archived nor deleted.",
    responses=problems(403, 404, 409),
)
def restore(job_id: JobId, context: Ctx) -> Response:
    """Take back that a job was archived or deleted; a deleted one can be restored for a day, or as long as the operator
    has set."""
    context.removals.restore(job_id)
    return json_answer(context.jobs.get(job_id))


@router.delete(
    "/jobs/{job_id:job}",
    summary="Delete a job",
    status_code=204,
    response_class=Response,
    response_description="It is deleted.",
    responses=problems(403, 404, 409),
)
def delete(job_id: JobId, context: Ctx) -> Response:
    """Delete a job that has ended, with its outputs, results and reports; of a pipeline, with the jobs of its steps.

    One that runs, or that something refers to, can't be deleted (409): a job that resumes from it or reads its outputs,
    a pipeline that has reused it, an asset or a schedule.
    """
    context.removals.delete(job_id)
    return no_content()
