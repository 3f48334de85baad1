"""Refusals, in words, of what no other route of this facade answers, as the service would refuse it."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response

from parallelrun_api.azure.answers import FacadeRoute, NotSupported
from parallelrun_api.azure.auth import PREFIX

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
