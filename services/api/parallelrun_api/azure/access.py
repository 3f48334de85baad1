"""Decides who may make a request of this facade, as for all other routes."""

from __future__ import annotations

from typing import Final

from anyio.to_thread import run_sync
from fastapi import Request

from parallelrun_api.azure.facade import Facade, FacadeOf
from parallelrun_api.azure.facade_assets import SHARED
from parallelrun_api.people.access import Subject
from parallelrun_core.errors import NotFound

READS: Final = frozenset({"read_run", "resolve_uris", "hand_out_signature", "hand_out_token", "list_compute_nodes"})
"""Routes that change nothing, though their method is another one than GET."""


async def check_access(request: Request, facade: FacadeOf) -> None:
    """Make sure that the person of a request may make it. Raises NotAllowed, NotFound."""
    route = request.scope.get("route")
    path = str(getattr(route, "path", ""))
    subject = await run_sync(_subject, facade, path, dict(request.path_params))
    is_read = getattr(route, "name", "") in READS
    await facade.context.access.check(
        request.method, subject, is_read=is_read, makes_own=path.endswith("/batchEndpoints/{name}/jobs")
    )


def _subject(facade: Facade, path: str, path_params: dict[str, str]) -> Subject | None:
    name = path_params.get("name", "")
    if "/jobs/{name}" in path or "/runs/{name}" in path:
        try:
            return Subject("job", facade.names.job_id(name))
        except NotFound:
            return None  # it is about to be submitted, or the route says that there is none
    if "/batchEndpoints/{name}" in path:
        return Subject("batch endpoint", name)
    if "/schedules/{name}" in path:
        return Subject("schedule", name)
    if "/datastores/{name}" in path:
        return Subject("datastore", name)
    kind = SHARED.get(path_params.get("kind", ""))
    return Subject("asset", name, kind) if kind is not None and name else None
