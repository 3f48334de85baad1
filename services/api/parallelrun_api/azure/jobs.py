"""Jobs: submitted, shown, listed, canceled, archived."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from parallelrun_api.azure.answers import FacadeRoute, answer
from parallelrun_api.azure.bodies import check_labels, check_not_masked, is_same, read_resource
from parallelrun_api.azure.documents import document_of
from parallelrun_api.azure.facade import WORKSPACE, Facade, FacadeOf, own_url
from parallelrun_api.azure.job_answers import job_answer
from parallelrun_api.azure.names import checked_name
from parallelrun_api.azure.resolving import FacadeNames
from parallelrun_api.http.paging import clamped, decode_token, encode_token
from parallelrun_api.people.access import Subject
from parallelrun_api.people.person import CURRENT
from parallelrun_api.submission.upload import SubmittedForm
from parallelrun_api.views.jobs import JobFilter
from parallelrun_core.azure.findings import Note
from parallelrun_core.errors import Conflict, NotFound
from parallelrun_core.intake.reading import read_job
from parallelrun_core.retention.marks import Marks, check_not_deleted

router = APIRouter(prefix=WORKSPACE, include_in_schema=False, route_class=FacadeRoute)

_PAGE: Final = 50
_FILTERS: Final = ("listViewType", "tag", "properties", "assetName", "scheduleId", "scheduled")
"""The filters of the list of jobs, as its clients call them."""
_CHANGEABLE: Final = ("displayName", "description", "tags", "properties")
_NO_WORK: Final = ("display_name", "experiment_name", "description", "tags", "properties", "services")
"""Fields of a job's document that may change, or that clients send back with what they got."""
_NOBODY_NOTIFIED: Final = Note("/notificationSetting", "nobody is notified of a job that Azure's client submits")


@router.put("/jobs/{name}", name="submit")
async def put_job(name: str, request: Request, facade: FacadeOf) -> Response:
    """Submit a job; with the name of one that there is, change its labels, or archive or restore it."""
    checked_name(name)
    _, sent = await read_resource(request, "a job")
    context = facade.context
    async with context.key_locks.hold(key := f"azure.{name}"):  # or a second job would be made before it is refused
        if await run_sync(facade.names.is_taken, name):
            job_id = await run_sync(_taken_by, facade, name)
            await context.access.check(request.method, Subject("job", job_id))  # it may just have been made
            await run_sync(_change_labels, facade, name, job_id, sent)
        else:
            upload = await run_sync(_upload, facade, name, sent)
            span = request.headers.get("traceparent", "")
            accepted = await run_sync(context.submissions.accept, upload, key, span)
            job_id = accepted.job_id
            await run_sync(facade.names.remember, name, job_id, sent)
            await context.registrar.register(accepted)
    job = await run_sync(context.jobs.submitted, job_id)
    return answer(job_answer(facade, request, job, name=name), 201)


def _taken_by(facade: Facade, name: str) -> str:
    """Return the id of the job with this name. Raises Conflict: this person doesn't see it, or it was deleted."""
    try:
        return facade.names.job_id(name)
    except NotFound as error:
        raise Conflict(f"{error.message} The name {name!r} stays taken: choose another one.") from error


def _change_labels(facade: Facade, name: str, job_id: str, sent: dict[str, Any]) -> None:
    """Change what may change of the job with this name.

    Raises:
        NotFound, InvalidInput, Conflict: as `change`; or it is another job.
    """
    remembered = facade.names.of(job_id)
    before = remembered.get("sent") if remembered.get("name") == name else None
    if before and sent.get("jobType") and not is_same(_work(sent), _work(before)):
        raise Conflict(
            f"There is a job {name!r} already, and this is another one: only the display name, the description, "
            "the tags and properties of a job change, and whether it is archived. Choose another name."
        )
    change(facade, job_id, sent)


def _work(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a job does, without what may change of it."""
    return {key: value for key, value in document_of(sent).items() if key not in _NO_WORK}


@router.get("/jobs/{name}")
def get_job(name: str, request: Request, facade: FacadeOf) -> Response:
    job = facade.context.jobs.get(facade.names.job_id(name))
    return answer(job_answer(facade, request, job, name=name))


@router.get("/jobs")
async def list_jobs(request: Request, facade: FacadeOf) -> Response:
    """The newest jobs first, a page at a time; `listViewType` says whether archived ones are among them."""
    query = request.query_params
    before = decode_token(query["$skip"], "azure-jobs", 1)[0] if query.get("$skip") else ""
    most = query.get("$top", "")
    limit = clamped(int(most)) if most.isdecimal() and len(most) < 6 else _PAGE
    filters = tuple((name, query[name]) for name in _FILTERS if query.get(name))
    owner = CURRENT.get().only_owner

    def encoded() -> dict[str, Any]:
        return _page(facade, request, dict(filters), owner, before=before, limit=limit)

    key = ("azure", request.url.path, request.headers.get("host"), before, limit, filters, owner)
    return answer(await facade.context.job_lists.run(key, encoded))


def _page(
    facade: Facade, request: Request, filters: Mapping[str, str], owner: str | None, *, before: str, limit: int
) -> dict[str, Any]:
    """A page of the jobs that a client asks for, and where the next one is."""
    view = filters.get("listViewType", "ActiveOnly")
    archived = {"ActiveOnly": (False,), "ArchivedOnly": (True,)}.get(view, (False, True))
    job_filter = JobFilter(owner=owner, has_archived=True in archived)
    jobs, last = facade.context.jobs.page(job_filter, before=before, limit=limit)
    schedule, scheduled = filters.get("scheduleId", ""), filters.get("scheduled", "").lower()
    of_schedule = _made_by(facade, [schedule]) if schedule else None
    of_any = _made_by(facade, facade.context.schedules.store.names()) if scheduled in ("true", "false") else frozenset()
    value: dict[str, Any] = {
        "value": [
            each
            for each in (job_answer(facade, request, job) for job in jobs)
            if each["properties"]["isArchived"] in archived
            and _has_tag(each, filters.get("tag", ""))
            and _has_properties(each, filters.get("properties", ""))
            and "assetName" not in filters  # jobs that materialize an asset: there are none
            and (of_schedule is None or _id_of(each) in of_schedule)
            and (scheduled not in ("true", "false") or (_id_of(each) in of_any) == (scheduled == "true"))
        ]
    }
    if last:
        path = request.url.path.removeprefix("/azure")
        query = urlencode({"$skip": encode_token("azure-jobs", last), **filters}, safe="$")
        value["nextLink"] = f"{own_url(request)}{path}?{query}"
    return value


def _has_tag(answer_fields: dict[str, Any], tag: str) -> bool:
    """Return whether a job has a tag, given as its name, or as `name=value`."""
    name, equals, value = tag.partition("=")
    tags = answer_fields["properties"]["tags"]
    return not tag or (name in tags and (not equals or tags[name] == value))


def _has_properties(answer_fields: dict[str, Any], pairs: str) -> bool:
    """Return whether a job has all properties of a list such as `a=b,c=d`."""
    properties = answer_fields["properties"]["properties"]
    named = (pair.partition("=") for pair in pairs.split(",") if pair)
    return all(str(properties.get(name)) == value for name, _, value in named)


def _id_of(answer_fields: dict[str, Any]) -> str:
    return str(answer_fields["properties"]["properties"]["parallelrun.job_id"])


def _made_by(facade: Facade, schedules: Iterable[str]) -> frozenset[str]:
    """The ids of the jobs that schedules have made. Raises NotFound: there is no schedule of a name."""
    store = facade.context.schedules.store
    names = list(schedules)
    for name in names:
        store.get(name)
    fires = (fire for name in names for _, fire in store.fires(name).latest_first())
    return frozenset(fire.job_id for fire in fires if fire.job_id)


@router.delete("/jobs/{name}", name="delete_job")
def delete_job(name: str, facade: FacadeOf) -> Response:
    facade.context.removals.delete(facade.names.job_id(name))
    return Response(status_code=200)


@router.post("/jobs/{name}/cancel", name="cancel")
def cancel_job(name: str, facade: FacadeOf) -> Response:
    """Cancel a job; the answer comes at once, and the job ends when its work has."""
    facade.context.cancels.cancel(facade.names.job_id(name))
    return Response(status_code=200)


def change(facade: Facade, job_id: str, sent: dict[str, Any]) -> None:
    """Change what may change of a job: its labels, and whether it is archived.

    Raises:
        NotFound: there is no such job, or it was deleted.
        InvalidInput: that would be more than is remembered.
        Conflict: it is to be archived or restored, and is a step of a pipeline.
    """
    folder = facade.context.jobs.folder(job_id)
    folder.record()
    check_not_deleted(folder)
    before = facade.names.of(job_id)
    changed = {**before.get("changed", {}), **{key: sent[key] for key in _CHANGEABLE if sent.get(key) is not None}}
    check_labels(changed)
    if sent.get("isArchived") is True:
        facade.context.removals.archive(job_id)
    elif sent.get("isArchived") is False and Marks(folder).is_archived:
        facade.context.removals.restore(job_id)
    of_earlier_releases = {"is_archived": False} if isinstance(sent.get("isArchived"), bool) else {}
    facade.names.change(job_id, changed=changed, **of_earlier_releases)


def _upload(facade: Facade, name: str, sent: dict[str, Any]) -> SubmittedForm:
    """A submission, as if its user had sent the document."""
    check_not_masked(sent)
    document = document_of(sent)
    reading = read_job(document, names=FacadeNames(facade))
    if sent.get("notificationSetting"):
        reading = replace(reading, notes=(*reading.notes, _NOBODY_NOTIFIED))
    digest = hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest()
    return SubmittedForm(reading=reading, code=None, sha256=digest, name=name)
