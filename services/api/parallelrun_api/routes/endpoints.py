"""Named jobs over data that whoever calls them gives."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated, Any, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Path, Query, Request, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import encoded, encoded_answer, json_answer, no_content
from parallelrun_api.people.person import CURRENT
from parallelrun_api.routes.responses import TraceParent, defined, document_body, problems, zip_form
from parallelrun_api.submission.forms import CODE
from parallelrun_api.submission.idempotency import checked_key
from parallelrun_api.submission.upload import (
    read_document,
    read_document_and_files,
)
from parallelrun_api.views.shown import etag
from parallelrun_core.answers.endpoints import BatchDeployment, BatchDeploymentList, BatchEndpoint, BatchEndpointList
from parallelrun_core.answers.jobs import Job
from parallelrun_core.endpoints.records import NAME_PATTERN
from parallelrun_core.layout import code_store

router = APIRouter(prefix="/v1", tags=["batch endpoints"])

_ENDPOINT: Final[dict[str, Any]] = {
    "type": "object",
    "description": "As Azure ML's YAML of a batch endpoint; see docs/batch-endpoints.md. `name` may be left out.",
}
_DEPLOYMENT: Final[dict[str, Any]] = {
    "type": "object",
    "description": "As Azure ML's YAML of a batch deployment; see docs/compatibility.md. Names may be left out.",
}


_DEPLOYMENT_BODY: Final = document_body(
    _DEPLOYMENT,
    "A document, or a form of a document and a zip of its code.",
    form=zip_form("code", "A document, whose job has no `code`.", "A zip of the folder with the scoring script."),
)
_INVOCATION: Final[dict[str, Any]] = {
    "type": "object",
    "description": "See docs/batch-endpoints.md.",
    "properties": {
        "deployment_name": {"type": "string", "description": "By default, the endpoint's default deployment."},
        "input": {"description": "The data: a path, a URL, a data asset, or a mapping with `path` and `type`."},
        "inputs": {"type": "object", "description": "The same by name, if there are several."},
        "outputs": {"type": "object", "description": "Where outputs are to be, by name."},
        "mini_batch_size": {"type": ["integer", "string"]},
        "instance_count": {"type": "integer"},
    },
}
Name = Annotated[str, Path(description="Name of a batch endpoint.", pattern=NAME_PATTERN, examples=["iris"])]
Deployment = Annotated[str, Path(description="Name of a deployment.", pattern=NAME_PATTERN, examples=["blue"])]


@router.get("/batch-endpoints", summary="List batch endpoints", response_model=BatchEndpointList, responses=problems())
def list_batch_endpoints(context: Ctx) -> Response:
    """All batch endpoints, by name."""
    person = CURRENT.get()
    return json_answer(
        BatchEndpointList(items=[each for each in context.endpoints.all() if person.may_see(each.owner)])
    )


@router.get(
    "/batch-endpoints/{endpoint:job}",
    summary="Get a batch endpoint",
    response_model=BatchEndpoint,
    responses=problems(404),
)
def get_batch_endpoint(endpoint: Name, context: Ctx) -> Response:
    """Return one batch endpoint, with the names of its deployments."""
    return json_answer(context.endpoints.get(endpoint))


@router.put(
    "/batch-endpoints/{endpoint:job}",
    summary="Define a batch endpoint",
    response_model=BatchEndpoint,
    response_description="It is defined anew. Its deployments stay.",
    responses=defined(BatchEndpoint),
    openapi_extra=document_body(_ENDPOINT, "A document."),
)
async def put_batch_endpoint(endpoint: Name, request: Request, context: Ctx) -> Response:
    """Define a batch endpoint, durably."""
    document = await read_document(request)
    defined, is_new = await run_sync(context.endpoints.put, endpoint, document)
    return json_answer(defined, 201 if is_new else 200)


@router.delete(
    "/batch-endpoints/{endpoint:job}",
    summary="Delete a batch endpoint",
    status_code=204,
    response_class=Response,
    response_description="It is gone, with its deployments. Their jobs stay.",
    responses=problems(403, 404),
)
def delete_batch_endpoint(endpoint: Name, context: Ctx) -> Response:
    """Forget a batch endpoint and its deployments. Jobs that they have made go on."""
    context.endpoints.remove(endpoint)
    return no_content()


@router.post(
    "/batch-endpoints/{endpoint:job}:invoke",
    summary="Invoke a batch endpoint",
    status_code=202,
    response_model=Job,
    response_description="The job is accepted, durably.",
    responses=problems(400, 403, 404, 409, 413, 415, 429),
    openapi_extra=document_body(_INVOCATION, "What is given: data, and settings other than the deployment's."),
)
async def invoke_batch_endpoint(
    endpoint: Name,
    request: Request,
    context: Ctx,
    idempotency_key: Annotated[
        str | None,
        Header(description="For at least a day, repeating a request with its key gives the same job.", max_length=200),
    ] = None,
    traceparent: TraceParent = None,
) -> Response:
    """Make a job of a deployment and the data that are given. It is checked and answered as a submission is."""
    key = checked_key(idempotency_key)
    document = await read_document(request)
    async with context.key_locks.hold(key):
        job_id = await run_sync(context.endpoints.invoke, endpoint, document, key, traceparent or "")
        await context.registrar.register(job_id)
    job = await run_sync(context.jobs.submitted, job_id)
    text = encoded(job)
    return encoded_answer(text, 202, {"Location": job.links.self, "ETag": etag(job, text)})


@router.get(
    "/batch-endpoints/{endpoint:job}/deployments",
    summary="List deployments",
    response_model=BatchDeploymentList,
    responses=problems(404),
)
def list_batch_deployments(endpoint: Name, context: Ctx) -> Response:
    """The deployments of a batch endpoint, by name."""
    return json_answer(BatchDeploymentList(items=context.endpoints.deployments(endpoint)))


@router.get(
    "/batch-endpoints/{endpoint:job}/deployments/{deployment:job}",
    summary="Get a deployment",
    response_model=BatchDeployment,
    responses=problems(404),
)
def get_batch_deployment(endpoint: Name, deployment: Deployment, context: Ctx) -> Response:
    """Return one deployment."""
    return json_answer(context.endpoints.deployment(endpoint, deployment))


@router.put(
    "/batch-endpoints/{endpoint:job}/deployments/{deployment:job}",
    summary="Define a deployment",
    response_model=BatchDeployment,
    response_description="It is defined anew.",
    responses={
        201: {"model": BatchDeployment, "description": "It is defined."},
        **problems(400, 403, 404, 413, 415),
    },
    openapi_extra=_DEPLOYMENT_BODY,
)
async def put_batch_deployment(
    endpoint: Name,
    deployment: Deployment,
    request: Request,
    context: Ctx,
    default: Annotated[bool, Query(description="Invoke it when a request names none.")] = False,
) -> Response:
    """Define a deployment, durably. What is known of its job is checked, and a copy of its code kept."""
    settings = context.settings
    document, code = await read_document_and_files(
        request, max_bytes=settings.max_body_bytes, folder=code_store(settings.root), part=CODE
    )
    with ExitStack() as open_files:
        if code is not None:
            open_files.enter_context(code)
        defined, is_new = await run_sync(
            lambda: context.endpoints.put_deployment(endpoint, deployment, document, code, is_default=default)
        )
    return json_answer(defined, 201 if is_new else 200)


@router.delete(
    "/batch-endpoints/{endpoint:job}/deployments/{deployment:job}",
    summary="Delete a deployment",
    status_code=204,
    response_class=Response,
    response_description="It is gone. Its jobs stay.",
    responses=problems(403, 404),
)
def delete_batch_deployment(endpoint: Name, deployment: Deployment, context: Ctx) -> Response:
    """Forget a deployment. Jobs that it has made go on."""
    context.endpoints.remove_deployment(endpoint, deployment)
    return no_content()
