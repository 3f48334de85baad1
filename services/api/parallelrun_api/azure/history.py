"""The history of runs: how jobs stand, their logs, children and outputs."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from parallelrun_api.azure.answers import FacadeRoute, answer
from parallelrun_api.azure.auth import PREFIX
from parallelrun_api.azure.blobs.names import ARTIFACTS, EXECUTION_LOG, OF_LOGS, OF_OUTPUTS, STDERR_LOG, STDOUT_LOG
from parallelrun_api.azure.blobs.places import logs_by_name
from parallelrun_api.azure.bodies import read_body
from parallelrun_api.azure.children import children_of
from parallelrun_api.azure.facade import READS, WORKSPACE, Facade, FacadeOf, scope_of
from parallelrun_api.azure.job_answers import job_answer, services, status_of
from parallelrun_api.azure.jobs import change
from parallelrun_api.azure.outputs import types_of
from parallelrun_api.azure.workspace import blob_url, signature_of
from parallelrun_core.answers.jobs import Job
from parallelrun_core.errors import InvalidInput
from parallelrun_core.wire.states import TERMINAL

_SCOPE: Final = WORKSPACE.removeprefix(PREFIX)
_HISTORY: Final = f"{PREFIX}/history/v1.0{_SCOPE}"
_DATA: Final = f"{PREFIX}/data/v1.0{_SCOPE}"
_RELEASE: Final = re.compile(r"azure-ai-ml/(\d{1,4})\.(\d{1,4})")
_WITH_NEW_WORDS: Final = (1, 35)
_NEW_WORDS: Final = {"uri_folder": "uri_folder", "uri_file": "uri_file", "mltable": "mltable"}
_OLD_WORDS: Final = {"uri_folder": "UriFolder", "uri_file": "UriFile", "mltable": "MLTable"}
_MOST_LOGS: Final = 200
_MOST_ASSETS: Final = 1000
_OUTPUT: Final = "azureml://outputs/"
"""What the ids of outputs begin with here; the client only hands them back."""

router = APIRouter(include_in_schema=False, route_class=FacadeRoute)


@router.get(_HISTORY + "/runs/{name}/details")
async def details(name: str, request: Request, facade: FacadeOf) -> Response:
    """Return how a job stands, and the addresses of its logs."""
    job = await run_sync(_job, facade, name)
    status = facade.streams.status(request.state.token_name, name, status_of(job))
    return answer(await run_sync(_details, facade, request, job, name, status))


@router.get(_HISTORY + "/runs/{name}")
def get_run(name: str, request: Request, facade: FacadeOf) -> Response:
    return answer(_run(facade, request, _job(facade, name), name))


@router.get(_HISTORY + "/runs/{name}/children")
async def list_children(name: str, request: Request, facade: FacadeOf) -> Response:
    """The steps of a pipeline, as runs."""
    job = await run_sync(_job, facade, name)

    most = request.query_params.get("$top", "")
    limit = int(most) if most.isdecimal() and len(most) < 6 else None

    def encoded() -> dict[str, Any]:
        runs = []
        for child, label in islice(children_of(facade, job, name), limit):
            run = _run(facade, request, child, child.id, pipeline=job)
            of_this = {"azureml.pipelinerunid": name} if "azureml.pipelinerunid" in run["properties"] else {}
            more = {"displayName": label or run["displayName"], "properties": {**run["properties"], **of_this}}
            runs.append({**run, "parentRunId": name, "rootRunId": name, **more})
        return {"value": runs, "continuationToken": None, "nextLink": None}

    key = ("azure", "children", request.headers.get("host"), request.state.token_name, name, limit)
    return answer(await facade.context.job_lists.run(key, encoded))


@router.get(_HISTORY + "/runs/{name}/serviceinstances/{node}")
def list_services(name: str, request: Request, facade: FacadeOf) -> Response:
    """Return where people look at a job."""
    job = _job(facade, name)
    instances = {
        key: {"type": value["jobServiceType"], "endpoint": value["endpoint"], "status": status_of(job)}
        for key, value in services(request, job).items()
    }
    return answer({"instances": instances})


@router.post(_HISTORY + "/rundata", name="read_run", tags=[READS])
async def run_data(request: Request, facade: FacadeOf) -> Response:
    """A job, with ids of its outputs."""
    name = _text(await read_body(request), "runId")
    job = await run_sync(_job, facade, name)
    run = await run_sync(_run, facade, request, job, name)
    types = await run_sync(types_of, facade, job.id, name)
    words = _words_of(request)
    outputs = {
        output: {"assetId": f"{_OUTPUT}{name}/{output}", "type": words.get(kind, words["uri_folder"])}
        for output, kind in types.items()
    }
    return answer({"runMetadata": {**run, "outputs": outputs}, "runDefinition": None, "jobSpecification": None})


@router.patch(_HISTORY + "/experiments/{experiment}/runs/{name}", name="change_run")
@router.patch(_HISTORY + "/runs/{name}", name="change_run")
async def change_run(name: str, request: Request, facade: FacadeOf) -> Response:
    """Change the labels of a job, or archive or restore it."""
    document = await read_body(request)
    if not isinstance(document, dict):
        raise InvalidInput.at("", "a change is a mapping")
    sent = {key: document.get(key) for key in ("displayName", "description", "tags", "properties")}
    job_id = await run_sync(facade.names.job_id, name)
    remembered = (await run_sync(facade.names.of, job_id)).get("changed", {})
    for key in ("tags", "properties"):
        if isinstance(changes := sent[key], dict):
            sent[key] = {**remembered.get(key, {}), **changes}
    await run_sync(change, facade, job_id, {**sent, "isArchived": document.get("hidden")})
    return answer(await run_sync(_run, facade, request, await run_sync(_job, facade, name), name))


@router.post(_DATA + "/dataversion/batchGetResolvedUris", name="resolve_uris", tags=[READS])
async def resolve_uris(request: Request, facade: FacadeOf) -> Response:
    """Return where outputs are, in the default datastore."""
    document = await read_body(request)
    ids = document.get("values") if isinstance(document, dict) else None
    if not isinstance(ids, list) or len(ids) > _MOST_ASSETS:
        raise InvalidInput.at("/values", f"a list of at most {_MOST_ASSETS:,} ids")
    datastore = f"azureml:/{scope_of(request).replace('/providers/Microsoft.MachineLearningServices', '')}/datastores"
    values = {
        each: {
            "uri": f"{datastore}/workspaceblobstore/paths/{OF_OUTPUTS}{each.removeprefix(_OUTPUT)}/",
            "type": "UriFolder",
        }
        for each in ids
        if isinstance(each, str) and each.startswith(_OUTPUT)
    }
    return answer({"values": values})


def _job(facade: Facade, name: str) -> Job:
    return facade.context.jobs.get(facade.names.job_id(name))


def _details(facade: Facade, request: Request, job: Job, name: str, status: str) -> dict[str, Any]:
    signature = signature_of(facade, request, ARTIFACTS, "r")
    printed: tuple[str, ...] = ()
    if job.spec.get("command"):
        printed = (STDOUT_LOG, STDERR_LOG) if job.state in TERMINAL else (STDOUT_LOG,)
    logs = {
        log: f"{blob_url(request, ARTIFACTS, quote(f'{OF_LOGS}{name}/{log}'))}?{signature}"
        for log in [EXECUTION_LOG, *printed, *logs_by_name(facade, job.id, _MOST_LOGS)]
    }
    return {
        "runId": name,
        "status": status,
        "startTimeUtc": job.started,
        "endTimeUtc": job.ended,
        "error": _error(job),
        "warnings": [{"message": text} for text in (*job.notes, *job.warnings)],
        "properties": {},
        "inputDatasets": [],
        "outputDatasets": [],
        "logFiles": logs,
    }


def _run(facade: Facade, request: Request, job: Job, name: str, pipeline: Job | None = None) -> dict[str, Any]:
    properties = job_answer(facade, request, job, name=name, pipeline=pipeline)["properties"]
    compute = str(properties.get("computeId") or "").rpartition("/")[2]
    return {
        "runId": name,
        "status": status_of(job),
        "createdUtc": job.submitted,
        "startTimeUtc": job.started,
        "endTimeUtc": job.ended,
        "displayName": properties.get("displayName") or job.name,
        "description": properties.get("description"),
        "experimentId": properties["experimentName"],
        "runType": "azureml.PipelineRun" if properties.get("jobType") == "Pipeline" else "azureml.StepRun",
        "hidden": properties["isArchived"],
        "tags": properties["tags"],
        "properties": properties["properties"],
        "services": {
            key: {"type": value["jobServiceType"], "endpoint": value["endpoint"]}
            for key, value in services(request, job).items()
        },
        "error": _error(job),
        "warnings": [],
        "parentRunId": properties.get("parentJobName"),
        "compute": {"target": compute, "targetType": "amlcompute"} if compute else None,
        "createdBy": {"userName": "parallelrun"},
    }


def _error(job: Job) -> dict[str, Any] | None:
    if job.failure is None:
        return None
    parts = (job.failure.summary, job.failure.first_cause, job.failure.hint)
    message = "\n".join(part for part in parts if part)
    return {"error": {"code": "UserError", "message": message, "messageFormat": "", "details": []}}


def _words_of(request: Request) -> dict[str, str]:
    """The types of outputs, as this release of the client writes them: it passes over those that it doesn't know."""
    release = _RELEASE.search(request.headers.get("user-agent", ""))
    is_new = release is None or (int(release[1]), int(release[2])) >= _WITH_NEW_WORDS
    return _NEW_WORDS if is_new else _OLD_WORDS


def _text(document: object, field: str) -> str:
    value = document.get(field) if isinstance(document, dict) else None
    if not isinstance(value, str):
        raise InvalidInput.at(f"/{field}", "it is a text")
    return value
