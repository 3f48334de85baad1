"""What no other route of this face answers: it is refused in words, as the service would refuse it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from parallelrun_api.azure.answers import FaceRoute, NotSupported
from parallelrun_api.azure.door import PREFIX

router = APIRouter(prefix=PREFIX, include_in_schema=False, route_class=FaceRoute)


@router.api_route("/{path:path}", methods=["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"], name="azure_unknown")
async def refuse(path: str, request: Request) -> Response:
    """Say what is missing."""
    what = path.rpartition("/workspaces/")[2].partition("/")[2] or path
    kind = what.split("/")[0][:60]
    raise NotSupported(f"ParallelRun has no {request.method} of {kind!r}; docs/azure-client.md says what it has.")
