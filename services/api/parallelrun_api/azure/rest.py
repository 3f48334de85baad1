"""Refusals, in words, of what no other route of this face answers, as the service would refuse it."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response

from parallelrun_api.azure.answers import FaceRoute, NotSupported
from parallelrun_api.azure.auth import PREFIX

_INSTEAD: Final = {
    "jobs": "archive a job; docs/azure-client.md says what else it has",
    "computes": "nodes come and go by themselves; `parallelrun compute` defines computes (docs/computes.md)",
    "workspaces": "there is one workspace, and it stays as it is",
    "listKeys": "there are no keys, a token is all",
    "resyncKeys": "there are no keys, a token is all",
    "onlineEndpoints": "it runs jobs and batch endpoints; docs/azure-client.md says what it has",
    "registries": "a site file says what stands for assets of registries (docs/assets.md#the-site-file)",
    "connections": "credentials are on the nodes (docs/storage.md)",
}

router = APIRouter(prefix=PREFIX, include_in_schema=False, route_class=FaceRoute)


@router.api_route("/{path:path}", methods=["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"], name="azure_unknown")
async def refuse(path: str, request: Request) -> Response:
    """Say what is missing."""
    name = _named(path)
    last = path.rstrip("/").rpartition("/")[2][:60]
    action = f" ({last})" if request.method == "POST" and last.isalpha() and last != name else ""
    instead = _INSTEAD.get(name, "docs/azure-client.md says what it has")
    raise NotSupported(f"ParallelRun has no {request.method} of {name!r}{action}: {instead}.")


def _named(path: str) -> str:
    """Return what a path is about: what is in the workspace, or what a provider has, or else its last part."""
    inside = path.partition("/workspaces/")[2].partition("/")[2]
    provided = path.partition("/providers/")[2].split("/")[1:2]
    return (inside.split("/")[0] if inside else next(iter(provided), path.rstrip("/").rpartition("/")[2]))[:60]
