"""Adds this face to the application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from parallelrun_api.azure import assets, endpoints, history, identity, jobs, rest, schedules, workspace
from parallelrun_api.azure.blobs import routes as blobs
from parallelrun_api.azure.blobs.store import BlobStore
from parallelrun_api.azure.door import BLOBS, PREFIX, AzureDoor
from parallelrun_api.azure.face import Face
from parallelrun_api.azure.names import Names
from parallelrun_api.azure.shelf import Shelf

if TYPE_CHECKING:
    from fastapi import FastAPI

    from parallelrun_api.context import Context
    from parallelrun_api.http.token import Token

OPEN_PATHS: Final = frozenset({f"{PREFIX}/discovery"})
"""The client asks there without showing anything; the answer has only what it was asked by."""
OWN_LIMITS: Final = BLOBS
"""Below this path, bodies have limits of their own."""


def install(app: FastAPI, context: Context, token: Token) -> AzureDoor:
    """Add the routes of this face to an application; returns what admits requests to them."""
    settings = context.settings
    app.state.azure = Face(
        context=context,
        token=token,
        blobs=BlobStore(settings.root, max_bytes=settings.max_upload_bytes),
        shelf=Shelf(settings.root),
        names=Names(settings.root),
    )
    for module in (identity, workspace, blobs, jobs, history, assets, schedules, endpoints, rest):
        app.include_router(module.router)
    return AzureDoor(token)
