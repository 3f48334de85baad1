"""Jobs, as the client expects them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from parallelrun_api.azure.face import own_url, scope_of
from parallelrun_api.azure.masking import masked
from parallelrun_core.wire.states import JobState

if TYPE_CHECKING:
    from fastapi import Request

    from parallelrun_api.azure.face import Face
    from parallelrun_api.models import Job

STATUSES: Final = {
    JobState.QUEUED: "Queued",
    JobState.PROCESSING: "Running",
    JobState.FINALIZING: "Finalizing",
    JobState.COMPLETED: "Completed",
    JobState.FAILED: "Failed",
    JobState.CANCELED: "Canceled",
}
_KIND: Final = "Microsoft.MachineLearningServices/workspaces/jobs"


def job_answer(face: Face, request: Request, job: Job, *, name: str = "") -> dict[str, Any]:
    """A job with all that its client has sent, and how it stands.

    Args:
        name: that by which it was asked for; by default, the one that its client has given to it.
    """
    remembered = face.names.of(job.id)
    sent = masked({**(remembered.get("sent") or _like_sent(job)), **remembered.get("changed", {})})
    job_name = name or remembered.get("name") or job.id
    properties = {
        **sent,
        "status": status_of(job),
        "isArchived": bool(remembered.get("is_archived")),
        "services": services(request, job),
        "properties": {**(sent.get("properties") or {}), "parallelrun.job_id": job.id},
        "tags": {str(key): str(value) for key, value in (sent.get("tags") or {}).items()},
    }
    properties.setdefault("experimentName", "Default")
    return {
        "id": f"{scope_of(request)}/jobs/{job_name}",
        "name": job_name,
        "type": _KIND,
        "systemData": {
            "createdAt": job.submitted,
            "createdBy": "parallelrun",
            "createdByType": "User",
            "lastModifiedAt": job.ended or job.submitted,
        },
        "properties": properties,
    }


def status_of(job: Job) -> str:
    """The state of a job, in the service's words. One that has ended without its record is still finalizing."""
    if job.state.is_terminal and job.ended is None:
        return "Finalizing"
    return STATUSES[job.state]


def services(request: Request, job: Job) -> dict[str, Any]:
    """Return where people look at a job: its own address."""
    # The client appends another parameter.
    url = f"{own_url(request).removesuffix('/azure')}{job.links.self}?of=azure-ai-ml"
    studio = {"jobServiceType": "Studio", "endpoint": url, "port": None, "status": None, "errorMessage": None}
    return {"Studio": studio}


def _like_sent(job: Job) -> dict[str, Any]:
    """Return what a client might have sent for a job that was submitted in another way."""
    spec = job.spec
    labels = {"displayName": job.name, "description": spec.get("description"), "experimentName": spec.get("experiment")}
    kinds = {"uri_folder": "uri_folder", "uri_file": "uri_file", "mltable": "mltable"}
    outputs = {
        name: {"jobOutputType": kinds.get(str(each.get("type")), "uri_folder")}
        for name, each in _named(spec, "outputs")
    }
    common = {**{key: value for key, value in labels.items() if value}, "outputs": outputs, "tags": spec.get("tags")}
    if spec.get("command"):
        none = "azureml:none:1"
        return {"jobType": "Command", "command": spec["command"], "environmentId": none, "inputs": {}, **common}
    return {"jobType": "Pipeline", "jobs": {}, "inputs": {}, "settings": {}, **common}


def _named(spec: dict[str, Any], field: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, each) for name, each in (spec.get(field) or {}).items() if isinstance(each, dict)]
