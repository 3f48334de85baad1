"""What every request gets: a log line, measurements, safe headers, and an answer even to a bug."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect

from parallelrun_api.http.problems import internal_error
from parallelrun_core.service import telemetry

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from parallelrun_api.metrics import Metrics

log = telemetry.logger()

_QUIET: Final = frozenset({"/livez", "/readyz", "/metrics"})
_CLIENT_GONE: Final = 499
_SAFE_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)


class RequestScope:
    """The outermost layer: it answers and logs whatever goes wrong."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        status = 0
        first_byte_s = 0.0

        async def send_safely(message: Message) -> None:
            nonlocal status, first_byte_s
            if message["type"] == "http.response.start":
                status, first_byte_s = message["status"], time.monotonic() - began
                message["headers"] = [*message.get("headers", ()), *_SAFE_HEADERS]
            await send(message)

        try:
            await self._app(scope, receive, send_safely)
        except ClientDisconnect:
            status = status or _CLIENT_GONE
        except Exception:
            trace_id = secrets.token_hex(8)
            log.exception("request_failed", trace_id=trace_id, method=scope["method"], route=_route(scope))
            if status:
                raise  # half of the answer is sent: only breaking the connection tells the client
            await internal_error(scope["path"], trace_id)(scope, receive, send_safely)
        finally:
            route = _route(scope)
            self._metrics.answered(scope["method"], route, status or _CLIENT_GONE, first_byte_s)
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
            **({"job_id": job_id[:32]} if job_id else {}),
        )


def _route(scope: Scope) -> str:
    """The path's template: what a client puts into a path stays out of metrics and logs."""
    return getattr(scope.get("route"), "path_format", None) or "unmatched"
