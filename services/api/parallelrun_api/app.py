"""The application: its routes and middleware."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Final

from fastapi import FastAPI

from parallelrun_api import azure
from parallelrun_api.context import Context
from parallelrun_api.http import problems
from parallelrun_api.http.audit import Audit
from parallelrun_api.http.auth import OPEN_PATHS, Guard
from parallelrun_api.http.requests import RequestScope
from parallelrun_api.http.sessions import Sessions
from parallelrun_api.http.token import Token
from parallelrun_api.routes import events, jobs, nodes, operations, session
from parallelrun_api.routes.late import LateRoutes
from parallelrun_api.studio.pages import Pages

DESCRIPTION = """\
Submit parallel jobs, follow them, fetch their logs and outputs.

Errors are `application/problem+json` with a stable `code`. Times are RFC 3339 in UTC. Lists come in pages with an
opaque `next_page_token`. Fields may be added to answers; unknown fields in requests are refused.
"""


_MODULES: Final = (
    "jobs", "drafts", "previews", "advice", "changing", "remembered", "schedules",
    "endpoints", "events", "mini_batches", "tiles", "files", "measurements", "nodes",
    "computes", "datastores", "limits", "assets", "people", "session", "operations", "admin",
)  # fmt: skip
"""The modules of routes, in the order in which the contract with clients lists them."""
_AT_ONCE: Final = (jobs, events, nodes, session, operations)
"""Those that a short job asks for. The others are imported with the first request that is for none of these."""


def _contract(app: FastAPI, late: LateRoutes) -> dict[str, Any]:
    from parallelrun_api.contract import document

    abouts = {router.tag: router.about for router in late.operations if router.about}
    subjects = {tag: abouts[tag] for tag in dict.fromkeys(router.tag for router in late.operations)}
    return document(app, late.routes, subjects)


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
    app.state.late = late = LateRoutes(_MODULES)
    app.openapi = lambda: _contract(app, late)  # type: ignore[method-assign]
    app.router.routes += [route for module in _AT_ONCE for route in module.router.routes]
    door = azure.install(app, context, token)
    app.router.routes.append(late)
    problems.install(app, lambda: late.routes)
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
