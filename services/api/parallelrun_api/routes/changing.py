"""Change jobs: pause, prioritize, resume, retry, archive, delete, restore and tag them."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from fastapi import Request, Response
from pydantic import Field, StringConstraints, model_validator

from parallelrun_api.context import Ctx, access_check
from parallelrun_api.http.answers import json_answer, no_content
from parallelrun_api.models import RequestModel
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.jobs import Job
from parallelrun_core.errors import InvalidInput
from parallelrun_core.folder.job_folder import job_folder
from parallelrun_core.folder.tags import tags_of, write_tags
from parallelrun_core.names.patterns import TAG_NAME, TAG_VALUE
from parallelrun_core.spec.fields import MOST_USD
from parallelrun_core.wire.states import Priority

router = Operations("jobs")
_MAX_ID: Final = 2**53 - 1
"""What every reader of JSON takes for a whole number."""
MOST_TAGS = 100
"""A job has at most so many once they are changed."""
TagName = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=TAG_NAME)]
TagValue = Annotated[str, StringConstraints(max_length=1024, pattern=TAG_VALUE)]


class NewPriority(RequestModel):
    """The priority that a job is to have."""

    priority: Priority
    """`low`, `normal` and `high` divide the part of its owner; `urgent`, which only admins give, is a part of its own,
    nine times that of an owner."""


@router.operation(
    "POST /jobs/{job_id:job}:pause", "Pause a job", Job, (403, 404, 409), "It is paused, now or since earlier."
)
def pause(job_id: JobId, context: Ctx) -> Response:
    """Let nodes begin no more mini-batches of a job, or of the steps of a pipeline. What runs ends and counts, no
    timeout runs meanwhile, and `:resume` lets it go on. One that an admin has paused, only admins can resume."""
    context.controls.pause(job_id)
    return json_answer(context.with_waiting(context.jobs.get(job_id)))


@router.operation(
    "POST /jobs/{job_id:job}:prioritize",
    "Change the priority of a job",
    Job,
    (400, 403, 404, 409),
    "It has this priority; nodes know it within seconds.",
)
def prioritize(job_id: JobId, request: Request, context: Ctx, wish: NewPriority) -> Response:
    """Give a job another priority while it waits or runs. Workers are taken back only at the end of a mini-batch."""
    before = context.controls.prioritize(job_id, wish.priority)
    request.state.changed = {"priority_from": before, "priority_to": wish.priority}  # for the audit log
    return json_answer(context.with_waiting(context.jobs.get(job_id)))


class Resume(RequestModel):
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


@router.operation(
    "POST /jobs/{job_id:job}:archive", "Archive a job", Job, (403, 404, 409), "It is archived, now or since earlier."
)
def archive(job_id: JobId, context: Ctx) -> Response:
    """Hide a job from lists. It stays, and whoever names it finds it. Of a step, its pipeline can be archived (409)."""
    context.removals.archive(job_id)
    return json_answer(context.jobs.get(job_id))


@router.operation(
    "POST /jobs/{job_id:job}:restore", "Restore a job", Job, (403, 404, 409), "It is neither archived nor deleted.",
    access=access_check(serves_deleted=True),
)  # fmt: skip
def restore(job_id: JobId, context: Ctx) -> Response:
    """Take back that a job was archived or deleted; a deleted one can be restored for a day, or as long as the operator
    has set."""
    context.removals.restore(job_id)
    return json_answer(context.jobs.get(job_id))


@router.operation(
    "DELETE /jobs/{job_id:job}", "Delete a job", None, (403, 404, 409), "It is deleted.",
    access=access_check(serves_deleted=True),
)  # fmt: skip
def delete(job_id: JobId, context: Ctx) -> Response:
    """Delete a job that has ended, with its outputs, results and reports; of a pipeline, with the jobs of its steps.

    One that runs, or that something refers to, can't be deleted (409): a job that resumes from it or reads its outputs,
    a pipeline that has reused it, an asset or a schedule.
    """
    context.removals.delete(job_id)
    return no_content()


class TagChange(RequestModel):
    """Changes of the tags of a job."""

    set: dict[TagName, TagValue] = Field(default={}, max_length=MOST_TAGS)
    """Tags that the job is to have, each with its value; the value may be empty."""
    remove: list[TagName] = Field(default=[], max_length=MOST_TAGS)
    """Names of tags that the job is to have no more; a name that it doesn't have changes nothing."""

    @model_validator(mode="after")
    def _is_one_thing(self) -> TagChange:
        if both := sorted({*self.set}.intersection(self.remove)):
            raise ValueError(f"{both[0]!r} is in `set` and in `remove`")
        return self


@router.operation("POST /jobs/{job_id:job}:tag", "Change the tags of a job", Job, (400, 403, 404), "It has these tags.")
def tag(job_id: JobId, context: Ctx, change: TagChange) -> Response:
    """Set and remove tags of a job, also of one that has ended. Other tags stay as they are."""
    context.jobs.get(job_id)  # a job that was deleted has no tags
    folder = job_folder(context.jobs.root, job_id)
    earlier = tags_of(folder, folder.record().spec)
    changed = {name: value for name, value in {**earlier, **change.set}.items() if name not in change.remove}
    if len(changed) > MOST_TAGS:
        raise InvalidInput(f"Job {job_id} would have {len(changed)} tags, more than {MOST_TAGS}: remove some.")
    if changed != earlier:
        write_tags(folder, changed)
    return json_answer(context.with_waiting(context.jobs.get(job_id)))
