"""Schedules: defined, shown, enabled and disabled, triggered, deleted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from parallelrun_api.azure.answers import FacadeRoute, NotSupported, answer, begun, resource
from parallelrun_api.azure.bodies import check_not_masked, is_same, masked, read_resource
from parallelrun_api.azure.documents import document_of, in_camel_case, in_snake_case
from parallelrun_api.azure.facade import WORKSPACE, Facade, FacadeOf, scope_of
from parallelrun_api.azure.payload_store import Sent
from parallelrun_api.azure.resolving import FacadeNames
from parallelrun_api.people.person import CURRENT
from parallelrun_api.schedules.service import ScheduleService
from parallelrun_api.submission.checks import PathChecks
from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.errors import InvalidInput
from parallelrun_core.schedules.records import Revision
from parallelrun_core.schedules.triggers import kinds, model_of

router = APIRouter(prefix=WORKSPACE, include_in_schema=False, route_class=FacadeRoute)

_VIEWS: Final = {"EnabledOnly": (True,), "DisabledOnly": (False,)}


@router.put("/schedules/{name}", name="put_schedule")
async def put_schedule(name: str, request: Request, facade: FacadeOf) -> Response:
    """Define a schedule, or define it anew; one that is only enabled or disabled stays what it is."""
    _, sent = await read_resource(request, "a schedule")
    revision = await run_sync(_put, facade, name, sent)
    return begun(_answer_of(facade, scope_of(request), name, revision))


@router.get("/schedules/{name}")
def get_schedule(name: str, request: Request, facade: FacadeOf) -> Response:
    """Return a schedule, as its client has sent it, or as one would have."""
    return answer(_answer_of(facade, scope_of(request), name, facade.context.schedules.store.get(name)))


@router.get("/schedules")
async def list_schedules(request: Request, facade: FacadeOf) -> Response:
    """All schedules; `listViewType` says which."""
    owner = CURRENT.get().only_owner
    states = _VIEWS.get(request.query_params.get("listViewType", "EnabledOnly"), (True, False))

    def listed() -> list[dict[str, Any]]:
        store = facade.context.schedules.store
        revisions = ((name, store.find(name)) for name in store.names())
        return [
            _answer_of(facade, scope_of(request), name, revision)
            for name, revision in revisions
            if revision is not None and revision.is_enabled in states and owner in (None, revision.owner)
        ]

    key = ("azure", "schedules", scope_of(request), states, owner)
    return answer({"value": await facade.context.job_lists.run(key, listed)})


@router.delete("/schedules/{name}", name="delete_schedule")
def delete_schedule(name: str, facade: FacadeOf) -> Response:
    """Forget a schedule; its jobs stay."""
    facade.context.schedules.remove(name)
    _sent(facade).remove(name)
    return Response(status_code=200)


@router.post("/schedules/{name}/trigger", name="trigger_schedule")
async def trigger_schedule(name: str, facade: FacadeOf) -> Response:
    """Make one job now."""
    accepted = await run_sync(facade.context.schedules.make_now, name, "")
    await facade.context.registrar.register(accepted)
    return answer({"submissionId": accepted.job_id, "scheduleActionType": "CreateJob"})


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
    """The trigger in our words; what its kind doesn't know, as clients add it, is left out."""
    kind = _kind_of(str(sent.get("triggerType", "")))
    model = model_of(kind)
    names = [field.alias or name for name, field in model.model_fields.items()] if model else []
    values = {name: sent.get(in_camel_case(name)) for name in names}
    fields = {name: value for name, value in values.items() if value not in (None, "")}
    for name in model.mappings if model else ():
        if isinstance(pattern := fields.get(name), Mapping):
            fields[name] = {in_snake_case(key): value for key, value in pattern.items() if value not in (None, [])}
            if not fields[name]:
                del fields[name]
    return {**fields, "type": kind}


def _kind_of(trigger_type: str) -> str:
    """The kind of a trigger that a client calls so, such as `Cron`; what is none, as it is, which is refused then."""
    return next((kind for kind in kinds() if kind.replace("_", "") == trigger_type.lower()), trigger_type.lower())


def _put(facade: Facade, name: str, sent: dict[str, Any]) -> Revision:
    is_enabled = sent.get("isEnabled", True) is not False
    schedules = facade.context.schedules
    last = schedules.store.find(name)
    before = _sent(facade).get(name, of=_definition_of(last)) if last else {}
    document = schedule_document(sent)
    if not before or not is_same(document, schedule_document(before)):
        check_not_masked(sent)
        revision, _ = _service(facade).put(name, _with_job_id(facade, document), None)
        _sent(facade).put(name, sent, of=_definition_of(revision))
    return schedules.enable(name, is_enabled=is_enabled)


def _with_job_id(facade: Facade, document: dict[str, Any]) -> dict[str, Any]:
    """The document, with the id of a job in place of the name that a client has given to it."""
    job = document["create_job"]
    if isinstance(job, str):
        document["create_job"] = f"azureml:{facade.names.job_id(job.removeprefix('azureml:'))}"
    return document


def _service(facade: Facade) -> ScheduleService:
    """Return what accepts schedules, with jobs that name what only this facade knows."""
    context, settings = facade.context, facade.context.settings
    checks = PathChecks(root=settings.root, places=settings.places)
    names = FacadeNames(facade)
    return ScheduleService(settings.root, context.submissions, checks, context.registry, names=names)


def _sent(facade: Facade) -> Sent:
    return Sent(facade.context.settings.root, "schedules")


def _definition_of(revision: Revision) -> str:
    """Return what only this definition of a schedule is called, whether the schedule is enabled or not."""
    definition = msgspec.structs.replace(revision, number=0, at=0.0, is_enabled=True)
    return hashlib.sha256(msgspec.json.encode(definition, order="sorted")).hexdigest()


def _answer_of(facade: Facade, scope: str, name: str, revision: Revision) -> dict[str, Any]:
    sent = masked(_sent(facade).get(name, of=_definition_of(revision)) or _like_sent(revision))
    properties = {**sent, "isEnabled": revision.is_enabled, "provisioningState": "Succeeded"}
    return resource(scope, {"schedules": name}, properties, dates={"createdAt": rfc3339(revision.made)})


def _like_sent(revision: Revision) -> dict[str, Any]:
    """Return what a client might have sent for a schedule that was defined in another way."""
    kind = str(revision.trigger.get("type", ""))
    model = model_of(kind)
    fields = {name: {} for name in (model.mappings if model else ())} | revision.trigger
    trigger = {
        in_camel_case(name): {in_camel_case(key): each for key, each in value.items() if each}
        if isinstance(value, dict)
        else value
        for name, value in fields.items()
        if name != "type" and value is not None
    }
    job = {"jobType": "Pipeline", "jobs": {}, "inputs": {}, "outputs": {}, "settings": {}}
    return {
        "displayName": revision.display_name,
        "description": revision.description,
        "tags": revision.tags,
        "properties": {},
        "trigger": {"triggerType": in_camel_case(f"_{kind}"), **trigger},
        "action": {"actionType": "CreateJob", "jobDefinition": job},
    }
