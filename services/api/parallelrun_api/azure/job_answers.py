"""Jobs, as the client expects them."""

from __future__ import annotations

from typing import Any, Final

from fastapi import Request

from parallelrun_api.azure.answers import resource
from parallelrun_api.azure.bodies import masked
from parallelrun_api.azure.children import step_of
from parallelrun_api.azure.facade import Facade, own_url, scope_of
from parallelrun_api.azure.payloads import job_payload
from parallelrun_core.answers.jobs import Job
from parallelrun_core.wire.states import TERMINAL, JobState

STATUSES: Final = {
    JobState.QUEUED: "Queued",
    JobState.PROCESSING: "Running",
    JobState.FINALIZING: "Finalizing",
    JobState.COMPLETED: "Completed",
    JobState.FAILED: "Failed",
    JobState.CANCELED: "Canceled",
}


def job_answer(
    facade: Facade, request: Request, job: Job, *, name: str = "", pipeline: Job | None = None
) -> dict[str, Any]:
    """A job with all that its client has sent, and how it stands.

    Args:
        name: that by which it was asked for; by default, the one that its client has given to it.
        pipeline: the one of which it is a step, if that is known already.
    """
    remembered = facade.names.of(job.id)
    step = step_of(facade, job, name or job.id, pipeline) if job.parent is not None or name == job.id else None
    scope = scope_of(request)
    by_client = remembered.get("sent") if step is None else None
    sent = masked({**(by_client or job_payload(facade, scope, job, step)), **remembered.get("changed", {})})
    job_name = name or remembered.get("name") or job.id
    properties = {
        **sent,
        "status": status_of(job),
        "isArchived": job.archived or bool(remembered.get("is_archived")),
        "services": services(request, job),
        "properties": {**(sent.get("properties") or {}), "parallelrun.job_id": job.id},
        "tags": {str(key): str(value) for key, value in (sent.get("tags") or {}).items()},
    }
    properties.setdefault("experimentName", "Default")
    dates = {"createdAt": job.submitted, "lastModifiedAt": job.ended or job.submitted}
    return resource(scope, {"jobs": job_name}, properties, dates=dates)


def status_of(job: Job) -> str:
    """The state of a job, in the service's words. One that has ended without its record is still finalizing."""
    if job.state in TERMINAL and job.ended is None:
        return "Finalizing"
    return STATUSES[JobState(job.state)]


def services(request: Request, job: Job) -> dict[str, Any]:
    """Return where people look at a job: its own address."""
    # The client appends another parameter.
    url = f"{own_url(request).removesuffix('/azure')}{job.links.self}?of=azure-ai-ml"
    studio = {"jobServiceType": "Studio", "endpoint": url, "port": None, "status": None, "errorMessage": None}
    return {"Studio": studio}
