"""An HTTP server that answers and cuts connections as a test says, and records its requests."""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

JOB = {"id": "job_1", "name": "words", "state": "processing", "version": 3, "submitted": "2026-11-21T09:30:00.000Z"}
COMPLETED = {**JOB, "state": "completed", "version": 9, "ended": "2026-11-21T09:30:04.000Z"}
CANCELED = {**COMPLETED, "state": "canceled"}
FAILED = {
    **COMPLETED,
    "state": "failed",
    "failure": {
        "code": "TOO_MANY_FAILURES",
        "summary": "2 items have failed.",
        "first_cause": "x\x1b[2J",
        "log": "logs/user/error/a.txt",
    },
}
EVENTS = "/v1/jobs/job_1/events"
MODIFIED = {"modified": "2026-01-02T03:04:05.000Z"}


@dataclass(frozen=True)
class Request:
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """An answer. `cut`: close the connection after the body, although more was announced. `parts`: what follows the
    body, of unknown length, each sent when it is there."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    parts: Callable[[], Iterable[bytes]] | None = None

    @classmethod
    def of(cls, document: object, status: int = 200, **headers: str) -> Answer:
        kind = "application/problem+json" if status >= 400 else "application/json"
        return cls(json.dumps(document).encode(), status, {"Content-Type": kind, **headers})

    @classmethod
    def events(cls, *events: tuple[str, str, object], cut: bool = False) -> Answer:
        text = "".join(f"id: {i}\nevent: {e}\ndata: {json.dumps(d)}\n\n" for i, e, d in events)
        return cls(text.replace("id: \n", "").encode(), headers={"Content-Type": "text/event-stream"}, cut=cut)


HANG_UP = Answer(status=0)
"""Close the connection without a word."""

Reply = Answer | Callable[[Request], Answer]


class FakeApi:
    """Use it in a `with` statement. The answers for a path are used in order; the last one stays."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._replies: defaultdict[tuple[str, str], deque[Reply]] = defaultdict(deque)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def on(self, method: str, path: str, *replies: Reply) -> None:
        """Answer requests to this path with these."""
        self._replies[method, path].extend(replies)

    def asked(self, path: str) -> list[Request]:
        """The requests to one path."""
        return [request for request in self.requests if request.path == path]

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        replies = self._replies[request.method, request.path]
        if not replies:
            return Answer.of({"title": "There is no such thing.", "code": "not_found", "detail": request.path}, 404)
        reply = replies.popleft() if len(replies) > 1 else replies[0]
        return reply(request) if callable(reply) else reply

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _serve(self) -> None:
                parts = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                request = Request(self.command, unquote(parts.path), query, dict(self.headers.items()), body)
                answer = api.answer(request)
                self.close_connection = answer.cut or answer.status == 0 or answer.parts is not None
                if answer.status == 0:
                    return
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                if answer.parts is None:
                    self.send_header("Content-Length", str(len(answer.body) + (1000 if answer.cut else 0)))
                self.end_headers()
                for part in chain([answer.body], answer.parts() if answer.parts else []):
                    self.wfile.write(part)

            do_GET = do_POST = do_DELETE = _serve

            def log_message(self, format: str, *args: Any) -> None:
                """Tests have their own record."""

        return Handler
