"""The jobs of batch endpoints and of their deployments."""

from __future__ import annotations

from typing import Any, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from parallelrun_api.azure.answers import FacadeRoute, answer
from parallelrun_api.azure.auth import PREFIX
from parallelrun_api.azure.facade import WORKSPACE, Facade, FacadeOf, own_url, scope_of
from parallelrun_api.azure.job_answers import status_of
from parallelrun_api.endpoints.service import is_made_by
from parallelrun_api.http.paging import decode_token, encode_token
from parallelrun_api.people.person import CURRENT
from parallelrun_api.views.jobs import JobFilter
from parallelrun_core.answers.jobs import Job

router = APIRouter(include_in_schema=False, route_class=FacadeRoute)

_PAGE: Final = 200
_LIST: Final = "azure-batch-jobs"
"""What the tokens of pages are for."""
_DATA_PLANE: Final = f"{PREFIX}/mferp/managementfrontend{WORKSPACE.removeprefix(PREFIX)}"
"""Where the client looks for these lists, which are on another host in Azure."""
_ENDPOINT: Final = "/batchEndpoints/{name}"
_DEPLOYMENT: Final = _ENDPOINT + "/deployments/{deployment}"


@router.get(WORKSPACE + _ENDPOINT + "/jobs")
@router.get(_DATA_PLANE + _ENDPOINT + "/jobs")
async def list_endpoint_jobs(name: str, request: Request, facade: FacadeOf) -> Response:
    """The jobs of a batch endpoint, the newest first, also those that others than this client have made."""
    await run_sync(facade.context.endpoints.get, name)
    return await _answered(facade, request, name, "")


@router.get(WORKSPACE + _DEPLOYMENT + "/jobs")
@router.get(_DATA_PLANE + _DEPLOYMENT + "/jobs")
async def list_deployment_jobs(name: str, deployment: str, request: Request, facade: FacadeOf) -> Response:
    """The jobs of one deployment, the newest first."""
    await run_sync(facade.context.endpoints.deployment, name, deployment)
    return await _answered(facade, request, name, deployment)


def batch_job(request: Request, job: Job) -> dict[str, Any]:
    """A job as those who invoke an endpoint see it."""
    return {
        "id": f"{scope_of(request)}/jobs/{job.id}",
        "name": job.id,
        "type": "Microsoft.MachineLearningServices/workspaces/batchEndpoints/jobs",
        "properties": {"status": status_of(job), "name": job.id},
    }


async def _answered(facade: Facade, request: Request, name: str, deployment: str) -> Response:
    """A page of the jobs of an endpoint, or of one of its deployments."""
    token = request.query_params.get("$skip", "")
    before = decode_token(token, _LIST, 1)[0] if token else ""
    owner = CURRENT.get().only_owner

    def encoded() -> dict[str, Any]:
        jobs, last = facade.context.jobs.page(JobFilter(owner=owner), before=before, limit=_PAGE)
        page: dict[str, Any] = {
            "value": [batch_job(request, job) for job in jobs if is_made_by(job.notes, name, deployment)]
        }
        if last:
            path = request.url.path.removeprefix(PREFIX)
            page["nextLink"] = f"{own_url(request)}{path}?$skip={encode_token(_LIST, last)}"
        return page

    key = ("azure", request.url.path, request.headers.get("host"), before, owner)
    return answer(await facade.context.job_lists.run(key, encoded))
