"""A second facade of the API, for Azure ML's own Python client (`azure-ai-ml`), unmodified.

It translates: what the client asks for becomes a job, an asset, a file or a refusal of the rest of the API, and the
answers become what the client expects. It decides nothing, and nothing else knows of it: without this folder, the API
is what it is. Who may do what is as for all other routes: `auth.py` admits requests by tokens that are made here of the
client's own (`credentials.py`), behind the same checks of hosts, sizes and connections.

All of it is below one prefix, `/azure`: the client is told so by `AZUREML_DEV_URL_MFE` (`parallelrun azure-env`).

All but its door is imported when the first request comes to it.
"""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, FastAPI

from parallelrun_api.azure.auth import BLOBS, PREFIX, AzureDoor
from parallelrun_api.context import Context
from parallelrun_api.http.late_router import LateRouter
from parallelrun_api.http.token import Token

OPEN_PATHS: Final = frozenset({f"{PREFIX}/discovery"})
"""The client asks there without showing anything; the answer has only what it was asked by."""
OWN_LIMITS: Final = BLOBS
"""Below this path, bodies have limits of their own."""


def install(app: FastAPI, context: Context, token: Token) -> AzureDoor:
    """Add this facade to an application; returns what admits requests to it."""

    def facade() -> APIRouter:
        from parallelrun_api.azure.routes import open_facade

        return open_facade(app, context, token)

    door = AzureDoor(token)
    app.router.routes.append(LateRouter(facade, door.leads_to))
    return door
