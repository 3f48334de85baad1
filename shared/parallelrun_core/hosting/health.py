"""A small HTTP server for services without one: liveness, readiness and metrics."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from parallelrun_core.hosting.storage_metrics import StorageCollector
from parallelrun_core.storage.objects.meters import Reading, reading


def serve_health(
    port: int, ready: Callable[[], bool], storage: Callable[[], Reading] = reading
) -> ThreadingHTTPServer | None:
    """Answer /livez (the process runs), /readyz (`ready()`), /metrics on the loopback interface, in a thread.

    Returns None, and does nothing, when the port is 0.

    Args:
        storage: what was asked of object stores; by default, by this process.
    """
    if not port:
        return None
    stores = CollectorRegistry()
    stores.register(StorageCollector(storage))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            match self.path:
                case "/livez":
                    self._answer(200, b"ok\n")
                case "/readyz":
                    self._answer(*((200, b"ready\n") if ready() else (503, b"not ready\n")))
                case "/metrics":
                    self._answer(200, generate_latest() + generate_latest(stores), CONTENT_TYPE_LATEST)
                case _:
                    self._answer(404, b"not found\n")

        def _answer(self, status: int, body: bytes, content_type: str = "text/plain; charset=utf-8") -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: health checks come every few seconds."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
    return server
