"""Refusals, in words, of what no other route of this face answers, as the service would refuse it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from parallelrun_api.azure.answers import FaceRoute, NotSupported
from parallelrun_api.azure.auth import PREFIX

router = APIRouter(prefix=PREFIX, include_in_schema=False, route_class=FaceRoute)


@router.api_route("/{path:path}", methods=["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"], name="azure_unknown")
async def refuse(path: str, request: Request) -> Response:
    """Say what is missing."""
    raise NotSupported(
        f"ParallelRun has no {request.method} of {_named(path)!r}; docs/azure-client.md says what it has."
    )


def _named(path: str) -> str:
    """Return what a path is about: what is in the workspace, or what a provider has, or else its last part."""
    inside = path.partition("/workspaces/")[2].partition("/")[2]
    provided = path.partition("/providers/")[2].split("/")[1:2]
    return (inside.split("/")[0] if inside else next(iter(provided), path.rstrip("/").rpartition("/")[2]))[:60]
