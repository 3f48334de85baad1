"""Named jobs over data that whoever calls them gives."""

from __future__ import annotations

from typing import Annotated, Any, Final

from anyio.to_thread import run_sync
from fastapi import Path, Query, Request, Response

from parallelrun_api.context import Ctx, access_check
from parallelrun_api.http.answers import json_answer, no_content
from parallelrun_api.routes.definition_routes import DefinitionRoutes
from parallelrun_api.routes.responses import TraceParent, created, document_body, zip_form
from parallelrun_api.routes.router import Operations
from parallelrun_api.routes.submitting import IdempotencyKey, accepted, document_and_files
from parallelrun_api.submission.upload import (
    read_document,
)
from parallelrun_core.answers.endpoints import BatchDeployment, BatchDeploymentList, BatchEndpoint, BatchEndpointList
from parallelrun_core.answers.jobs import Job
from parallelrun_core.layout import code_store
from parallelrun_core.names.patterns import PLAIN_NAME

router = Operations("batch endpoints", about="Jobs over data that whoever calls them gives.")

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
Name = Annotated[str, Path(description="Name of a batch endpoint.", pattern=PLAIN_NAME, examples=["iris"])]
Deployment = Annotated[str, Path(description="Name of a deployment.", pattern=PLAIN_NAME, examples=["blue"])]


DefinitionRoutes(
    path="/batch-endpoints",
    noun="batch endpoint",
    name=Path(alias="endpoint", description="Name of a batch endpoint.", pattern=PLAIN_NAME, examples=["iris"]),
    models=(BatchEndpoint, BatchEndpointList),
    service=lambda context: context.endpoints,
    answer=lambda endpoint: endpoint,
    texts=(
        "All batch endpoints, by name.",
        "Return one batch endpoint, with the names of its deployments.",
        "Define a batch endpoint, durably.",
        "Forget a batch endpoint and its deployments. Jobs that they have made go on.",
    ),
    redefined="It is defined anew. Its deployments stay.",
    removed="It is gone, with its deployments. Their jobs stay.",
    body=document_body(_ENDPOINT, "A document."),
    convertor=":job",
).add_to(router)


@router.operation(
    "POST /batch-endpoints/{endpoint:job}:invoke",
    "Invoke a batch endpoint",
    Job,
    (400, 403, 404, 409, 413, 415, 429),
    "The job is accepted, durably.",
    status=202,
    access=access_check(makes_own=True),
    openapi_extra=document_body(_INVOCATION, "What is given: data, and settings other than the deployment's."),
)
async def invoke_batch_endpoint(
    endpoint: Name,
    request: Request,
    context: Ctx,
    key: IdempotencyKey,
    traceparent: TraceParent = None,
) -> Response:
    """Make a job of a deployment and the data that are given. It is checked and answered as a submission is."""
    document = await read_document(request)
    return await accepted(
        context, key, lambda key: context.endpoints.invoke(endpoint, document, key, traceparent or "")
    )


@router.operation("GET /batch-endpoints/{endpoint:job}/deployments", "List deployments", BatchDeploymentList, (404,))
def list_batch_deployments(endpoint: Name, context: Ctx) -> Response:
    """The deployments of a batch endpoint, by name."""
    return json_answer(BatchDeploymentList(items=context.endpoints.deployments(endpoint)))


@router.operation(
    "GET /batch-endpoints/{endpoint:job}/deployments/{deployment:job}", "Get a deployment", BatchDeployment, (404,)
)
def get_batch_deployment(endpoint: Name, deployment: Deployment, context: Ctx) -> Response:
    """Return one deployment."""
    return json_answer(context.endpoints.deployment(endpoint, deployment))


@router.operation(
    "PUT /batch-endpoints/{endpoint:job}/deployments/{deployment:job}",
    "Define a deployment",
    BatchDeployment,
    (400, 403, 404, 413, 415),
    "It is defined anew.",
    others=created(BatchDeployment),
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
    async with document_and_files(request, context, code_store(context.settings.root)) as (document, code):
        defined, is_new = await run_sync(
            lambda: context.endpoints.put_deployment(endpoint, deployment, document, code, is_default=default)
        )
    return json_answer(defined, 201 if is_new else 200)


@router.operation(
    "DELETE /batch-endpoints/{endpoint:job}/deployments/{deployment:job}",
    "Delete a deployment",
    None,
    (403, 404),
    "It is gone. Its jobs stay.",
)
def delete_batch_deployment(endpoint: Name, deployment: Deployment, context: Ctx) -> Response:
    """Forget a deployment. Jobs that it has made go on."""
    context.endpoints.remove_deployment(endpoint, deployment)
    return no_content()
