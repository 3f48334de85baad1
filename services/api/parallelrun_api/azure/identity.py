"""The managed identity of this machine, as the client's credentials ask for it."""

from __future__ import annotations

import time
from typing import Final

from fastapi import APIRouter, Request, Response

from parallelrun_api.azure import credentials
from parallelrun_api.azure.answers import FacadeRoute, answer
from parallelrun_api.azure.auth import AUDIENCES, PREFIX
from parallelrun_api.azure.facade import FacadeOf
from parallelrun_core.errors import InvalidInput, Unauthorized

router = APIRouter(prefix=PREFIX, include_in_schema=False, route_class=FacadeRoute)

_DEFAULT: Final = "/.default"


@router.get("/identity", name="hand_out_token")
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
