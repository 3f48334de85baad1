"""Batch endpoints and their deployments: defined, shown, deleted, and invoked with data."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from parallelrun_api.azure.answers import FacadeRoute, answer, begun, resource
from parallelrun_api.azure.bodies import check_not_masked, masked, read_resource
from parallelrun_api.azure.deployments import data_given, deployment_document, without_effect
from parallelrun_api.azure.endpoint_jobs import batch_job
from parallelrun_api.azure.facade import WORKSPACE, Facade, FacadeOf, own_url, scope_of
from parallelrun_api.azure.payload_store import Sent
from parallelrun_api.azure.resolving import FacadeNames
from parallelrun_api.endpoints.service import EndpointService
from parallelrun_api.people.person import CURRENT
from parallelrun_api.submission.checks import PathChecks
from parallelrun_core.answers.endpoints import BatchDeployment, BatchEndpoint
from parallelrun_core.errors import InvalidInput

router = APIRouter(prefix=WORKSPACE, include_in_schema=False, route_class=FacadeRoute)

_ENDPOINT: Final = "/batchEndpoints/{name}"
_MOST_CHARACTERS: Final = 200
_DEPLOYMENT: Final = _ENDPOINT + "/deployments/{deployment}"
_REQUEST_ID: Final = ("repeatability_request-id", "repeatability-request-id")
"""The headers of an invocation that stay the same when its client sends it again, as after an answer that was lost."""


@router.get("/batchEndpoints")
async def list_endpoints(request: Request, facade: FacadeOf) -> Response:
    """All batch endpoints that the person of the request may see, by name."""
    key, person = ("azure", "endpoints"), CURRENT.get()
    endpoints = await facade.context.job_lists.run(key, facade.context.endpoints.all)
    return answer({"value": [_endpoint_answer(request, each) for each in endpoints if person.may_see(each.owner)]})


@router.get(_ENDPOINT)
def get_endpoint(name: str, request: Request, facade: FacadeOf) -> Response:
    """Return a batch endpoint."""
    return answer(_endpoint_answer(request, facade.context.endpoints.get(name)))


@router.put(_ENDPOINT, name="put_batch_endpoint")
async def put_endpoint(name: str, request: Request, facade: FacadeOf) -> Response:
    """Define a batch endpoint, or define it anew."""
    sent, properties = await read_resource(request, "a batch endpoint")
    defaults = properties.get("defaults") or {}
    if not isinstance(defaults, dict):
        raise InvalidInput.at("/properties/defaults", "it is a mapping", "deploymentName is known")
    default = defaults.get("deploymentName")
    document = {
        "description": properties.get("description") or "",
        "tags": sent.get("tags") or {},
        **({"defaults": {"deployment_name": default}} if default else {}),
    }
    endpoint, _ = await run_sync(facade.context.endpoints.put, name, document)
    return begun(_endpoint_answer(request, endpoint))


@router.delete(_ENDPOINT, name="delete_batch_endpoint")
def delete_endpoint(name: str, facade: FacadeOf) -> Response:
    """Forget a batch endpoint with its deployments; their jobs stay."""
    deployments = facade.context.endpoints.get(name).deployments
    facade.context.endpoints.remove(name)
    for deployment in deployments:
        _remembered(facade).remove(_stored_name(name, deployment))
    return Response(status_code=200)


@router.get(_ENDPOINT + "/deployments")
async def list_deployments(name: str, request: Request, facade: FacadeOf) -> Response:
    """The deployments of a batch endpoint, by name."""

    def listed() -> list[dict[str, Any]]:
        return [_deployment_answer(facade, request, each) for each in facade.context.endpoints.deployments(name)]

    return answer({"value": await facade.context.job_lists.run(("azure", "deployments", request.url.path), listed)})


@router.get(_DEPLOYMENT)
def get_deployment(name: str, deployment: str, request: Request, facade: FacadeOf) -> Response:
    """Return a deployment, as its client has sent it."""
    return answer(_deployment_answer(facade, request, facade.context.endpoints.deployment(name, deployment)))


@router.put(_DEPLOYMENT, name="put_batch_deployment")
async def put_deployment(name: str, deployment: str, request: Request, facade: FacadeOf) -> Response:
    """Define a deployment, or define it anew."""
    sent, properties = await read_resource(request, "a deployment")
    check_not_masked(properties)
    document = {**deployment_document(properties), "tags": sent.get("tags") or {}}

    def put() -> dict[str, Any]:
        batch_deployment, _ = _service(facade).put_deployment(name, deployment, document, None, is_default=False)
        stored_name, definition = _stored_name(name, deployment), _definition_of(batch_deployment)
        _remembered(facade).put(stored_name, dict(properties), of=definition)
        return _deployment_answer(facade, request, batch_deployment)

    return begun(await run_sync(put))


@router.delete(_DEPLOYMENT, name="delete_batch_deployment")
def delete_deployment(name: str, deployment: str, facade: FacadeOf) -> Response:
    """Forget a deployment; its jobs stay."""
    facade.context.endpoints.remove_deployment(name, deployment)
    _remembered(facade).remove(_stored_name(name, deployment))
    return Response(status_code=200)


@router.post(_ENDPOINT + "/jobs", name="invoke_batch_endpoint")
async def invoke(name: str, request: Request, facade: FacadeOf) -> Response:
    """Make a job of a deployment and the data that are given; once, however often the client sends it."""
    _, properties = await read_resource(request, "an invocation")
    invocation, notes = data_given(properties), without_effect(properties)
    if deployment := request.headers.get("azureml-model-deployment"):
        invocation["deployment_name"] = deployment
    context, key = facade.context, _key_of(request)
    async with context.key_locks.hold(key):
        accepted = await run_sync(partial(_service(facade).invoke, name, invocation, key, notes=notes))
        await context.registrar.register(accepted)
    return answer(batch_job(request, await run_sync(context.jobs.submitted, accepted.job_id)), 201)


def _key_of(request: Request) -> str:
    """Return the idempotency key of an invocation; empty: its client hasn't named it."""
    named = next((text for name in _REQUEST_ID if (text := request.headers.get(name))), "")
    return f"azure.invoke.{hashlib.sha256(named.encode()).hexdigest()}" if named else ""


def _service(facade: Facade) -> EndpointService:
    """Return what accepts deployments and data that name what only this facade knows."""
    context, settings = facade.context, facade.context.settings
    checks = PathChecks(root=settings.root, places=settings.places)
    names = FacadeNames(facade)
    return EndpointService(settings.root, context.submissions, checks, names=names)


def _remembered(facade: Facade) -> Sent:
    return Sent(facade.context.settings.root, "deployments")


def _definition_of(deployment: BatchDeployment) -> str:
    """Return what only this definition of a deployment is called."""
    return f"{deployment.created} {deployment.modified}"


def _stored_name(endpoint: str, deployment: str) -> str:
    """Return what a deployment is remembered by: a digest of its names, where they are too long for a file's name."""
    name = f"{endpoint}.{deployment}"
    return name if len(name) <= _MOST_CHARACTERS else hashlib.sha256(name.encode()).hexdigest()


def _endpoint_answer(request: Request, endpoint: BatchEndpoint) -> dict[str, Any]:
    scope = scope_of(request)
    properties = {
        "authMode": "AADToken",
        "description": endpoint.description,
        "defaults": {"deploymentName": endpoint.default_deployment or None},
        "properties": {},
        "provisioningState": "Succeeded",
        "scoringUri": f"{own_url(request)}{scope}/batchEndpoints/{endpoint.name}/jobs",
        "swaggerUri": None,
    }
    return resource(scope, {"batchEndpoints": endpoint.name}, properties, location="local", tags=endpoint.tags)


def _deployment_answer(facade: Facade, request: Request, deployment: BatchDeployment) -> dict[str, Any]:
    stored_name = _stored_name(deployment.endpoint, deployment.name)
    sent = masked(_remembered(facade).get(stored_name, of=_definition_of(deployment)))
    return resource(
        scope_of(request),
        {"batchEndpoints": deployment.endpoint, "deployments": deployment.name},
        {"outputAction": "AppendRow", "properties": {}, **sent, "provisioningState": "Succeeded"},
        dates={"createdAt": deployment.created},
        location="local",
        tags=deployment.tags,
    )
