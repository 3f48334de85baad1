"""Decides who may make a request of this facade, as for all other routes; and hands out tokens for it, as the managed
identity of this machine, which the client's credentials ask."""

from __future__ import annotations

import time
from typing import Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from parallelrun_api.azure import credentials
from parallelrun_api.azure.answers import HANDS_OUT, FacadeRoute, answer
from parallelrun_api.azure.auth import AUDIENCES, PREFIX
from parallelrun_api.azure.facade import READS, Facade, FacadeOf
from parallelrun_api.azure.facade_assets import SHARED
from parallelrun_api.people.access import Subject
from parallelrun_core.errors import InvalidInput, NotFound, Unauthorized

router = APIRouter(prefix=PREFIX, include_in_schema=False, route_class=FacadeRoute)

_DEFAULT: Final = "/.default"


async def check_access(request: Request, facade: FacadeOf) -> None:
    """Make sure that the person of a request may make it. Raises NotAllowed, NotFound."""
    route = request.scope.get("route")
    path = str(getattr(route, "path", ""))
    subject = await run_sync(_subject, facade, path, dict(request.path_params))
    is_read = READS in getattr(route, "tags", ())
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


@router.get("/identity", name="hand_out_token", tags=[HANDS_OUT])
async def token(request: Request, facade: FacadeOf) -> Response:
    """A token for one audience, which ends within the hour."""
    resource = request.query_params.get("resource", "").removesuffix(_DEFAULT).rstrip("/")
    if resource not in AUDIENCES:
        raise InvalidInput.at("resource", f"there are no tokens for {resource[:80]!r}", ", ".join(sorted(AUDIENCES)))
    name = request.state.token_name
    secret = facade.token.secret_of(name)
    if secret is None:
        raise Unauthorized("The token has been removed.")
    new_token, ends = credentials.new_token(secret, name, resource, now=time.time())
    return answer({"access_token": new_token, "expires_on": str(ends), "resource": resource, "token_type": "Bearer"})
