"""Schedules: defined, shown, enabled and disabled, triggered, deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from parallelrun_api.azure.answers import FaceRoute, NotSupported, answer, begun
from parallelrun_api.azure.bodies import read_body
from parallelrun_api.azure.documents import document_of
from parallelrun_api.azure.face import WORKSPACE, Face, FaceOf, scope_of
from parallelrun_api.azure.masking import check_not_masked, masked
from parallelrun_api.azure.payload_store import Sent
from parallelrun_api.azure.resolving import FaceNames
from parallelrun_api.people.person import CURRENT
from parallelrun_api.schedules.accepting import Schedules
from parallelrun_api.submission.checks import PathChecks
from parallelrun_api.views.shown import rfc3339
from parallelrun_core.errors import InvalidInput

if TYPE_CHECKING:
    from parallelrun_core.schedules.records import Revision

router = APIRouter(prefix=WORKSPACE, include_in_schema=False, route_class=FaceRoute)

_FIELDS: Final = {"expression": "expression", "timeZone": "time_zone", "startTime": "start_time", "endTime": "end_time"}
_RECURRING: Final = {"frequency": "frequency", "interval": "interval"}
_PATTERN: Final = {"hours": "hours", "minutes": "minutes", "weekDays": "week_days", "monthDays": "month_days"}
_VIEWS: Final = {"EnabledOnly": (True,), "DisabledOnly": (False,)}


@router.put("/schedules/{name}", name="put_schedule")
async def put_schedule(name: str, request: Request, face: FaceOf) -> Response:
    """Define a schedule, or define it anew; one that is only enabled or disabled stays what it is."""
    document = await read_body(request)
    sent = document.get("properties") if isinstance(document, dict) else None
    if not isinstance(sent, dict):
        raise InvalidInput.at("/properties", "a schedule has properties")
    revision = await run_sync(_put, face, name, sent)
    return begun(_answer_of(face, scope_of(request), name, revision))


@router.get("/schedules/{name}")
async def get_schedule(name: str, request: Request, face: FaceOf) -> Response:
    """Return one schedule."""
    revision = await run_sync(face.context.schedules.store.get, name)
    return answer(await run_sync(_answer_of, face, scope_of(request), name, revision))


@router.get("/schedules")
async def list_schedules(request: Request, face: FaceOf) -> Response:
    """All schedules; `listViewType` says which."""
    owner = CURRENT.get().only_owner
    states = _VIEWS.get(request.query_params.get("listViewType", "EnabledOnly"), (True, False))

    def listed() -> list[dict[str, Any]]:
        store = face.context.schedules.store
        revisions = ((name, store.of(name).revision()) for name in store.names())
        return [
            _answer_of(face, scope_of(request), name, revision)
            for name, revision in revisions
            if revision is not None and revision.is_enabled in states and owner in (None, revision.owner)
        ]

    key = ("azure", "schedules", scope_of(request), states, owner)
    return answer({"value": await face.context.job_lists.run(key, listed)})


@router.delete("/schedules/{name}", name="delete_schedule")
async def delete_schedule(name: str, face: FaceOf) -> Response:
    """Forget a schedule; its jobs stay."""
    await run_sync(face.context.schedules.remove, name)
    await run_sync(_sent(face).remove, name)
    return Response(status_code=200)


@router.post("/schedules/{name}/trigger", name="trigger_schedule")
async def trigger_schedule(name: str, face: FaceOf) -> Response:
    """Make one job now."""
    job_id = await run_sync(face.context.schedules.make_now, name, "")
    await face.context.registrar.register(job_id)
    return answer({"submissionId": job_id, "scheduleActionType": "CreateJob"})


def schedule_document(sent: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a schedule that a client has sent.

    Raises:
        NotSupported: it does something else than to make jobs.
        InvalidInput: it is none.
    """
    action, trigger = sent.get("action"), sent.get("trigger")
    if not isinstance(action, Mapping) or not isinstance(trigger, Mapping):
        raise InvalidInput.at("/properties", "a schedule has an action and a trigger")
    if action.get("actionType") != "CreateJob":
        raise NotSupported(f"A schedule makes jobs here, and nothing else: {str(action.get('actionType'))[:40]}.")
    job = action.get("jobDefinition")
    if not isinstance(job, Mapping):
        raise InvalidInput.at("/properties/action/jobDefinition", "it is a mapping")
    source = str(job.get("sourceJobId") or "").rpartition("/")[2].removeprefix("azureml:")
    labels = {"display_name": sent.get("displayName"), "description": sent.get("description"), "tags": sent.get("tags")}
    return {
        **{key: value for key, value in labels.items() if value},
        "trigger": _trigger(trigger),
        "create_job": f"azureml:{source}" if source and not job.get("jobs") else document_of(job),
    }


def _trigger(sent: Mapping[str, Any]) -> dict[str, Any]:
    fields = {ours: sent[theirs] for theirs, ours in _FIELDS.items() if sent.get(theirs)}
    fields["type"] = str(sent.get("triggerType", "")).lower()
    if fields["type"] == "recurrence":
        fields |= {ours: sent[theirs] for theirs, ours in _RECURRING.items() if sent.get(theirs)}
        fields["frequency"] = str(fields.get("frequency", "")).lower()
        pattern = sent.get("schedule")
        pattern_fields = pattern if isinstance(pattern, Mapping) else {}
        times = {ours: pattern_fields[theirs] for theirs, ours in _PATTERN.items() if pattern_fields.get(theirs)}
        if times:
            fields["schedule"] = times
    return fields


def _put(face: Face, name: str, sent: dict[str, Any]) -> Revision:
    is_enabled = sent.get("isEnabled", True) is not False
    before = _sent(face).get(name)
    schedules = face.context.schedules
    if not before or masked(_meant(before)) != masked(_meant(sent)):
        check_not_masked(sent)
        _accepting(face).put(name, _with_job_id(face, schedule_document(sent)), None)
        _sent(face).put(name, sent)
    return schedules.enable(name, is_enabled=is_enabled)


def _meant(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a schedule is, without whether it is enabled and what the client adds to what it got."""
    job = dict((sent.get("action") or {}).get("jobDefinition") or {})
    work = {key: job.get(key) for key in ("jobs", "inputs", "outputs", "command", "codeId", "sourceJobId")}
    return {"trigger": _trigger(sent.get("trigger") or {}), "job": work, "labels": sent.get("displayName")}


def _with_job_id(face: Face, document: dict[str, Any]) -> dict[str, Any]:
    """The document, with the id of a job in place of the name that a client has given to it."""
    job = document["create_job"]
    if isinstance(job, str):
        document["create_job"] = f"azureml:{face.names.job_id(job.removeprefix('azureml:'))}"
    return document


def _accepting(face: Face) -> Schedules:
    """Return what accepts schedules, with jobs that name what only this face knows."""
    context, settings = face.context, face.context.settings
    checks = PathChecks(root=settings.root, places=settings.places)
    names = FaceNames(face)
    return Schedules(settings.root, context.submissions, checks, context.registry, names=names)


def _sent(face: Face) -> Sent:
    return Sent(face.context.settings.root, "schedules")


def _answer_of(face: Face, scope: str, name: str, revision: Revision) -> dict[str, Any]:
    sent = masked(_sent(face).get(name) or _like_sent(revision))
    return {
        "id": f"{scope}/schedules/{name}",
        "name": name,
        "type": "Microsoft.MachineLearningServices/workspaces/schedules",
        "systemData": {"createdAt": rfc3339(revision.made), "createdBy": "parallelrun", "createdByType": "User"},
        "properties": {**sent, "isEnabled": revision.is_enabled, "provisioningState": "Succeeded"},
    }


def _like_sent(revision: Revision) -> dict[str, Any]:
    """Return what a client might have sent for a schedule that was defined in another way."""
    trigger_fields = revision.trigger
    trigger = {
        theirs: trigger_fields[ours]
        for theirs, ours in (_FIELDS | _RECURRING).items()
        if trigger_fields.get(ours) is not None
    }
    pattern = trigger_fields.get("schedule") or {}
    kind = {"cron": "Cron", "recurrence": "Recurrence"}[str(trigger_fields.get("type", "cron"))]
    times = {theirs: pattern.get(ours) for theirs, ours in _PATTERN.items() if pattern.get(ours)}
    job = {"jobType": "Pipeline", "jobs": {}, "inputs": {}, "outputs": {}, "settings": {}}
    return {
        "displayName": revision.display_name,
        "description": revision.description,
        "tags": revision.tags,
        "properties": {},
        "trigger": {"triggerType": kind, **trigger, **({"schedule": times} if kind == "Recurrence" else {})},
        "action": {"actionType": "CreateJob", "jobDefinition": job},
    }
