"""Jobs: submitted, shown, listed, canceled, archived."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlencode

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from parallelrun_api.azure.answers import FaceRoute, answer
from parallelrun_api.azure.bodies import check_labels, read_body
from parallelrun_api.azure.documents import document_of
from parallelrun_api.azure.face import WORKSPACE, Face, FaceOf, own_url
from parallelrun_api.azure.job_answers import job_answer
from parallelrun_api.azure.masking import check_not_masked
from parallelrun_api.azure.names import checked_name
from parallelrun_api.azure.resolving import FaceNames
from parallelrun_api.http.paging import clamped, decode_token, encode_token
from parallelrun_api.people.person import CURRENT
from parallelrun_api.submission.upload import SubmittedForm
from parallelrun_api.views.jobs import JobFilter
from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import read_job

router = APIRouter(prefix=WORKSPACE, include_in_schema=False, route_class=FaceRoute)

_PAGE: Final = 50
_CHANGEABLE: Final = ("displayName", "description", "tags", "properties")


@router.put("/jobs/{name}", name="submit")
async def put_job(name: str, request: Request, face: FaceOf) -> Response:
    """Submit a job; with the name of one that there is, change its labels, or archive or restore it."""
    checked_name(name)
    document = await read_body(request)
    sent = document.get("properties") if isinstance(document, dict) else None
    if not isinstance(sent, dict):
        raise InvalidInput.at("/properties", "a job has properties")
    context = face.context
    if await run_sync(face.names.is_taken, name):
        job_id = await run_sync(face.names.job_id, name)
        await run_sync(change, face, job_id, sent)
    else:
        upload = await run_sync(_upload, face, sent)
        async with context.key_locks.hold(f"azure.{name}"):
            span = request.headers.get("traceparent", "")
            job_id = await run_sync(context.submissions.accept, upload, f"azure.{name}"[:128], span)
            await run_sync(face.names.remember, name, job_id, sent)
            await context.registrar.register(job_id)
    job = await run_sync(context.jobs.submitted, job_id)
    return answer(job_answer(face, request, job, name=name), 201)


@router.get("/jobs/{name}")
async def get_job(name: str, request: Request, face: FaceOf) -> Response:
    """Return one job."""
    job_id = await run_sync(face.names.job_id, name)
    job = await run_sync(face.context.jobs.get, job_id)
    return answer(job_answer(face, request, job, name=name))


@router.get("/jobs")
async def list_jobs(request: Request, face: FaceOf) -> Response:
    """The newest jobs first, a page at a time; `listViewType` says whether archived ones are among them."""
    query = request.query_params
    before = decode_token(query["$skip"], "azure-jobs", 1)[0] if query.get("$skip") else ""
    most = query.get("$top", "")
    limit = clamped(int(most)) if most.isdecimal() and len(most) < 6 else _PAGE
    view = query.get("listViewType", "ActiveOnly")
    tag, schedule = query.get("tag", ""), query.get("scheduleId", "")
    scheduled = query.get("scheduled", "").lower()
    owner = CURRENT.get().only_owner

    def encoded() -> dict[str, Any]:
        jobs, last = face.context.jobs.page(JobFilter(owner=owner), before=before, limit=limit)
        answers = [job_answer(face, request, job) for job in jobs]
        archived = {"ActiveOnly": (False,), "ArchivedOnly": (True,)}.get(view, (False, True))
        of_view = [each for each in answers if each["properties"]["isArchived"] in archived]
        of_schedule = _made_by(face, [schedule]) if schedule else None
        of_any = _made_by(face, face.context.schedules.store.names()) if scheduled in ("true", "false") else frozenset()
        value = {
            "value": [
                each
                for each in of_view
                if _has_tag(each, tag)
                and (of_schedule is None or _id_of(each) in of_schedule)
                and (scheduled not in ("true", "false") or (_id_of(each) in of_any) == (scheduled == "true"))
            ]
        }
        if last:
            token = encode_token("azure-jobs", last)
            path = request.url.path.removeprefix("/azure")
            query = {"$skip": token, "listViewType": view, "tag": tag, "scheduleId": schedule, "scheduled": scheduled}
            filters = urlencode({key: text for key, text in query.items() if text}, safe="$")
            value["nextLink"] = f"{own_url(request)}{path}?{filters}"  # type: ignore[assignment]
        return value

    key = ("azure", request.url.path, request.headers.get("host"), before, limit, view, tag, schedule, scheduled, owner)
    return answer(await face.context.job_lists.run(key, encoded))


def _has_tag(answer_fields: dict[str, Any], tag: str) -> bool:
    """Return whether a job has a tag, given as its name, or as `name=value`."""
    name, equals, value = tag.partition("=")
    tags = answer_fields["properties"]["tags"]
    return not tag or (name in tags and (not equals or tags[name] == value))


def _id_of(answer_fields: dict[str, Any]) -> str:
    return str(answer_fields["properties"]["properties"]["parallelrun.job_id"])


def _made_by(face: Face, schedules: Iterable[str]) -> frozenset[str]:
    """The ids of the jobs that schedules have made. Raises NotFound: there is no schedule of a name."""
    store = face.context.schedules.store
    names = list(schedules)
    for name in names:
        store.get(name)
    fires = (fire for name in names for _, fire in store.of(name).fires())
    return frozenset(fire.job_id for fire in fires if fire.job_id)


@router.post("/jobs/{name}/cancel", name="cancel")
async def cancel_job(name: str, request: Request, face: FaceOf) -> Response:
    """Cancel a job; the answer comes at once, and the job ends when its work has."""
    job_id = await run_sync(face.names.job_id, name)
    await run_sync(face.context.cancels.cancel, job_id)
    return Response(status_code=200)


def change(face: Face, job_id: str, sent: dict[str, Any]) -> None:
    """Change what may change of a job: its labels, and whether it is archived.

    Raises:
        NotFound: there is no such job.
        InvalidInput: that would be more than is remembered.
    """
    face.context.jobs.folder(job_id).record()
    before = face.names.of(job_id)
    changed = {**before.get("changed", {}), **{key: sent[key] for key in _CHANGEABLE if sent.get(key) is not None}}
    check_labels(changed)
    fields: dict[str, Any] = {"changed": changed}
    if isinstance(sent.get("isArchived"), bool):
        fields["is_archived"] = sent["isArchived"]
    face.names.change(job_id, **fields)


def _upload(face: Face, sent: dict[str, Any]) -> SubmittedForm:
    """A submission, as if its user had sent the document."""
    check_not_masked(sent)
    document = document_of(sent)
    names = FaceNames(face)
    digest = hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest()
    return SubmittedForm(reading=read_job(document, names=names), code=None, sha256=digest)
