"""The frame of every request: an id, a log line, measurements, safe headers, and an answer even to a bug."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from parallelrun_api.http.audit import SAFE_METHODS, Audit
from parallelrun_api.http.auth import OPEN_PATHS
from parallelrun_api.http.connections import Connections
from parallelrun_api.http.errors import Crowded
from parallelrun_api.http.problems import internal_error, problem_response
from parallelrun_api.metrics import ServerMetrics
from parallelrun_core.service import telemetry

log = telemetry.logger()

_QUIET: Final = frozenset({"/livez", "/readyz", "/metrics"})
_CLIENT_GONE: Final = 499
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_WITH_FILES: Final = re.compile(
    r"/v1/(jobs|schedules/[^/:]+|batch-endpoints/[^/:]+/deployments/[^/:]+|assets/[^/]+/[^/]+/versions(/[^/:]+)?)"
)
"""Requests to these paths, which may have files with them, have limits of their own on their bodies."""
MAX_BODY_BYTES: Final = 2 << 20
"""Of all other requests; a list of all mini-batches that can be retried at once is half as long."""
_SAFE_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)


@dataclass(frozen=True)
class RequestScope:
    """The outermost layer: it answers and logs whatever goes wrong."""

    app: ASGIApp
    metrics: ServerMetrics
    connections: Connections
    audit: Audit
    own_limits: str
    """The beginning of paths whose bodies have limits of their own, beside those of requests with files."""

    def _has_own_limits(self, path: str) -> bool:
        return path.startswith(self.own_limits) or _WITH_FILES.fullmatch(path) is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.monotonic()
        status = 0
        first_byte_s = 0.0
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_safely(message: Message) -> None:
            nonlocal status, first_byte_s
            if message["type"] == "http.response.start":
                status, first_byte_s = message["status"], time.monotonic() - began
                response_headers = list(message.get("headers", ()))
                header_names = {name.lower() for name, _ in response_headers}
                safe = [header for header in _SAFE_HEADERS if header[0] not in header_names]
                headers = [*response_headers, *safe, (b"x-request-id", request_id.encode())]
                message["headers"] = headers
                self.audit.answered(scope, status, headers)
            await send(message)

        try:
            if scope["method"] not in SAFE_METHODS and not self._has_own_limits(scope["path"]):
                receive = _bounded(receive)
            elif scope["method"] == "GET" and self.connections.is_crowded and scope["path"] not in OPEN_PATHS:
                crowded = Crowded("Too many requests are being answered right now. Try again soon.")
                await problem_response(crowded, scope["path"])(scope, receive, send_safely)
                return
            await self.app(scope, receive, send_safely)
        except ClientDisconnect:
            status = status or _CLIENT_GONE
        except Exception:
            log.exception("request_failed", trace_id=request_id, method=scope["method"], route=_route(scope))
            if status:
                raise  # half of the answer is sent: only breaking the connection tells the client
            await internal_error(scope["path"], request_id)(scope, receive, send_safely)
        finally:
            route = _route(scope)
            self.metrics.answered(scope["method"], route, status or _CLIENT_GONE, first_byte_s)
            if scope["path"] not in _QUIET or status >= 500:
                self._log(scope, route, status, time.monotonic() - began)

    def _log(self, scope: Scope, route: str, status: int, took_s: float) -> None:
        job_id = scope.get("path_params", {}).get("job_id")
        log.info(
            "request",
            method=scope["method"],
            route=route,
            status=status,
            ms=round(took_s * 1000, 1),
            request_id=scope["state"]["request_id"],
            **({"job_id": job_id[:32]} if job_id else {}),
        )


def _route(scope: Scope) -> str:
    """The path's template: what a client puts into a path stays out of metrics and logs."""
    return getattr(scope.get("route"), "path_format", None) or "unmatched"


def _request_id(scope: Scope) -> str:
    """The id that the client or a proxy has given to the request, or a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return str(value, "ascii")
    return secrets.token_hex(8)


def _bounded(receive: Receive) -> Receive:
    """Receive a body up to a limit; one over it is refused before it is read to its end."""
    received = 0

    async def bounded() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > MAX_BODY_BYTES:
            raise HTTPException(413, f"The body has more than {MAX_BODY_BYTES:,} bytes.")
        return message

    return bounded
