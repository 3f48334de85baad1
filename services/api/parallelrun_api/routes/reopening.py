"""Resume a job that has ended, or retry its failed mini-batches."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from fastapi import Response
from pydantic import Field

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer
from parallelrun_api.models import Asked
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.jobs import Job
from parallelrun_core.spec.fields import MOST_USD

router = Operations("jobs")


_MAX_ID: Final = 2**53 - 1
"""What every reader of JSON takes for a whole number."""


class Resume(Asked):
    """The way to continue a job."""

    accept_changed_inputs: bool = False
    """Continue even if files were changed or removed since they were scheduled."""
    budget_usd: float | None = Field(default=None, gt=0, le=MOST_USD)
    """The job's budget from now on, in US dollars, what it has spent included; null: it stays as it was."""


class Retry(Resume):
    """The mini-batches to try again."""

    mini_batches: list[Annotated[int, Field(ge=0, le=_MAX_ID)]] | None = Field(default=None, max_length=100_000)
    """Only what has failed in these mini-batches; in all of them when not given."""


@router.operation(
    "POST /jobs/{job_id:job}:resume",
    "Resume a job",
    Job,
    (400, 403, 404, 409, 429),
    "The job is queued again.",
    status=202,
)
def resume(job_id: JobId, context: Ctx, wish: Resume | None = None) -> Response:
    """Continue a failed or canceled job, or one that Redis has lost: run its mini-batches that have no result yet.

    A job that is paused goes on. Plan and code stay as they were. To run changed code, submit a new job that takes over
    from this one: `resume_from`.
    """
    wish = wish or Resume()
    if context.controls.is_paused(job_id):
        context.controls.go_on(job_id)
        return json_answer(context.jobs.get(job_id), 202)
    context.controls.forget_pause(job_id)
    context.reopenings.resume(job_id, accept_changed_inputs=wish.accept_changed_inputs, budget_usd=wish.budget_usd)
    return json_answer(_with_note(context.jobs.get(job_id)), 202)


@router.operation(
    "POST /jobs/{job_id:job}:retry",
    "Retry failed mini-batches",
    Job,
    (400, 403, 404, 409, 429),
    "The job is queued again.",
    status=202,
)
def retry(job_id: JobId, context: Ctx, wish: Retry | None = None) -> Response:
    """Try failed mini-batches again, and items of others that have failed alone, into the same output.

    Rows of what was successful are kept.

    The code stays as it was. To run changed code, submit a new job that takes over from this one: `resume_from`.
    """
    wish = wish or Retry()
    if not context.controls.is_paused(job_id):
        context.controls.forget_pause(job_id)
    context.reopenings.retry(
        job_id,
        mini_batches=wish.mini_batches,
        accept_changed_inputs=wish.accept_changed_inputs,
        budget_usd=wish.budget_usd,
    )
    return json_answer(_with_note(context.jobs.get(job_id)), 202)


def _with_note(job: Job) -> Job:
    note = (
        f"It runs the code as submitted on {job.submitted}; to run changed code, "
        f"submit a new job with resume_from: {job.id}."
    )
    return msgspec.structs.replace(job, notes=[*job.notes, note])
