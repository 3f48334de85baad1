"""A collector of traces: it takes what is sent by OTLP over HTTP, and decodes it with OpenTelemetry's own messages."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True, kw_only=True)
class Received:
    """One span."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    begin: float
    """Seconds since the epoch, to the microsecond."""
    end: float
    attributes: dict[str, Any]
    error: str | None
    """None: it has not failed."""
    service: str


class Collector:
    """Use it in a `with` statement. `statuses` are answered in order; the last one stays."""

    def __init__(self, *statuses: int) -> None:
        self.spans: list[Received] = []
        self.raw = b""
        """All that was sent, as it was."""
        self.requests: list[tuple[str, dict[str, str]]] = []
        """Path and headers of each."""
        self._statuses = list(statuses or (200,))
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = collector._take(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def named(self, name: str) -> list[Received]:
        """The spans of this name."""
        return [span for span in self.spans if span.name == name]

    def _take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        self.requests.append((path, headers))
        status = self._statuses.pop(0) if len(self._statuses) > 1 else self._statuses[0]
        plain = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
        self.raw += plain
        if status == 200:
            self.spans += _decoded(plain)
        return status

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def black_hole() -> Iterator[str]:
    """The URL of a collector that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def take() -> None:
            with suppress(OSError):
                while True:
                    held.append(server.accept()[0])

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in held:
            connection.close()


def _decoded(body: bytes) -> Iterator[Received]:
    request = ExportTraceServiceRequest()
    request.ParseFromString(body)
    for of_resource in request.resource_spans:
        service = _plain(of_resource.resource.attributes)["service.name"]
        for scope in of_resource.scope_spans:
            for span in scope.spans:
                yield Received(
                    name=span.name,
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    begin=span.start_time_unix_nano / 1e9,
                    end=span.end_time_unix_nano / 1e9,
                    attributes=_plain(span.attributes),
                    error=span.status.message if span.status.code == span.status.STATUS_CODE_ERROR else None,
                    service=service,
                )


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
