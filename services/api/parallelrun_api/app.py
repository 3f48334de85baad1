"""The application: its routes and middleware."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Final

from fastapi import FastAPI

from parallelrun_api.azure import install as azure
from parallelrun_api.context import Context
from parallelrun_api.contract import document
from parallelrun_api.http import problems
from parallelrun_api.http.audit import Audit
from parallelrun_api.http.auth import OPEN_PATHS, Guard
from parallelrun_api.http.requests import RequestScope
from parallelrun_api.http.sessions import Sessions
from parallelrun_api.http.token import Token
from parallelrun_api.routes import (
    admin,
    advice,
    assets,
    changing,
    computes,
    datastores,
    drafts,
    endpoints,
    events,
    files,
    jobs,
    limits,
    measurements,
    mini_batches,
    nodes,
    operations,
    people,
    previews,
    remembered,
    schedules,
    session,
    tiles,
)
from parallelrun_api.studio.pages import Pages

DESCRIPTION = """\
Submit parallel jobs, follow them, fetch their logs and outputs.

Errors are `application/problem+json` with a stable `code`. Times are RFC 3339 in UTC. Lists come in pages with an
opaque `next_page_token`. Fields may be added to answers; unknown fields in requests are refused.
"""


_MODULES: Final = (
    jobs, drafts, previews, advice, changing, remembered, schedules,
    endpoints, events, mini_batches, tiles, files, measurements, nodes,
    computes, datastores, limits, assets, people, session, operations, admin,
)  # fmt: skip
"""The routes, in the order in which the contract with clients lists them."""


def _subjects() -> dict[str, str]:
    routers = [module.router for module in _MODULES]
    abouts = {router.tag: router.about for router in routers if router.about}
    return {tag: abouts[tag] for tag in dict.fromkeys(router.tag for router in routers)}


def create_app(context: Context, token: Token, audit: Audit | None = None) -> FastAPI:
    """The application of one server; `token` is what clients must present."""
    audit = audit or Audit()
    audit.has_people = lambda: token.has_people

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await context.close()
        audit.close()

    app = FastAPI(
        title="ParallelRun",
        version=version("parallelrun"),
        description=DESCRIPTION,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        lifespan=lifespan,
        openapi_url="/v1/openapi.json",
        # These pages would load scripts from other servers.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Nobody configures it, and each request would look whether somebody has.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.context = context
    app.state.sessions = sessions = Sessions(token, context.settings.root)
    app.state.token = token
    app.openapi = lambda: document(app, _subjects())  # type: ignore[method-assign]
    routes = [route for module in _MODULES for route in module.router.routes]
    app.router.routes += routes
    door = azure.install(app, context, token)
    problems.install(app, routes)
    open_paths = (
        OPEN_PATHS | azure.OPEN_PATHS | {session.PATH} | ({"/metrics"} if context.settings.is_loopback else set())
    )
    # The middleware that is added last sees the request first.
    hosts = context.settings.hosts
    app.add_middleware(
        Guard, sessions=sessions, hosts=hosts, open_paths=frozenset(open_paths), doors=(door,), pages=Pages()
    )
    app.add_middleware(
        RequestScope,
        metrics=context.metrics,
        connections=context.connections,
        audit=audit,
        own_limits=azure.OWN_LIMITS,
    )
    return app
