"""All routes of this facade, what they work with, and refusals of what none of them answers."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Depends, FastAPI, Request, Response

from parallelrun_api.azure import (
    access,
    assets,
    computes,
    endpoint_jobs,
    endpoints,
    history,
    jobs,
    schedules,
    workspace,
)
from parallelrun_api.azure.answers import FacadeRoute, NotSupported
from parallelrun_api.azure.asset_store import AssetStore
from parallelrun_api.azure.auth import PREFIX
from parallelrun_api.azure.blobs import routes as blobs
from parallelrun_api.azure.blobs.store import BlobStore
from parallelrun_api.azure.facade import Facade
from parallelrun_api.azure.names import NameStore
from parallelrun_api.context import Context
from parallelrun_api.http.token import Token

_INSTEAD: Final = {
    "computes": "nodes come and go by themselves; `parallelrun compute` defines computes (docs/computes.md)",
    "workspaces": "there is one workspace, and it stays as it is",
    "listKeys": "there are no keys, a token is all",
    "resyncKeys": "there are no keys, a token is all",
    "onlineEndpoints": "it runs jobs and batch endpoints; docs/azure-client.md says what it has",
    "registries": "a site file says what stands for assets of registries (docs/assets.md#the-site-file)",
    "connections": "credentials are on the nodes (docs/storage.md)",
}

router = APIRouter(prefix=PREFIX, include_in_schema=False, route_class=FacadeRoute)


def open_facade(app: FastAPI, context: Context, token: Token) -> APIRouter:
    """Give an application what the routes of this facade work with; returns them."""
    settings = context.settings
    app.state.azure = Facade(
        context=context,
        token=token,
        blobs=BlobStore(settings.root, max_bytes=settings.max_upload_bytes),
        asset_store=AssetStore(settings.root),
        names=NameStore(settings.root, check_seen=context.access.check_job_seen),
    )
    facade = APIRouter(redirect_slashes=False)
    modules = (access, workspace, computes, blobs, jobs, history, assets, schedules, endpoints, endpoint_jobs)
    for each in (*(module.router for module in modules), router):
        facade.include_router(each, dependencies=[Depends(access.check_access)])
    return facade


@router.api_route("/{path:path}", methods=["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"], name="azure_unknown")
async def refuse(path: str, request: Request) -> Response:
    """Say what is missing."""
    collections = _collections(path.rstrip("/"))
    action = ""
    if request.method == "POST" and len(collections) > 1 and collections[-1].isalpha():
        action = f" ({collections.pop()[:60]})"
    name = "/".join(collections)[:60]
    instead = _INSTEAD.get(collections[0], "docs/azure-client.md says what it has")
    raise NotSupported(f"ParallelRun has no {request.method} of {name!r}{action}: {instead}.")


def _collections(path: str) -> list[str]:
    """Return the collections that a path leads into, such as `batchEndpoints` and its `jobs`: those of the workspace,
    or what a provider has, or else the path's last part. The last one may be an action.
    """
    inside = path.partition("/workspaces/")[2].partition("/")[2]
    if inside:
        return inside.split("/")[0::2]
    provided = path.partition("/providers/")[2].split("/")[1:2]
    return [next(iter(provided), path.rpartition("/")[2])]
