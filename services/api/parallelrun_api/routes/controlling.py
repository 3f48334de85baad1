"""Pause jobs, and give them another priority."""

from __future__ import annotations

from fastapi import Request, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer
from parallelrun_api.models import Asked
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.jobs import Job
from parallelrun_core.wire.states import Priority

router = Operations("jobs")


class NewPriority(Asked):
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
