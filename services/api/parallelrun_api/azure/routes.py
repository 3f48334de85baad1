"""All routes of this facade, and what they work with."""

from __future__ import annotations

from fastapi import APIRouter, Depends, FastAPI

from parallelrun_api.azure import (
    assets,
    computes,
    endpoint_jobs,
    endpoints,
    history,
    identity,
    jobs,
    rest,
    schedules,
    workspace,
)
from parallelrun_api.azure.access import check_access
from parallelrun_api.azure.asset_store import AssetStore
from parallelrun_api.azure.blobs import routes as blobs
from parallelrun_api.azure.blobs.store import BlobStore
from parallelrun_api.azure.facade import Facade
from parallelrun_api.azure.names import NameStore
from parallelrun_api.context import Context
from parallelrun_api.http.token import Token


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
    router = APIRouter(redirect_slashes=False)
    for module in (
        identity,
        workspace,
        computes,
        blobs,
        jobs,
        history,
        assets,
        schedules,
        endpoints,
        endpoint_jobs,
        rest,
    ):
        router.include_router(module.router, dependencies=[Depends(check_access)])
    return router
