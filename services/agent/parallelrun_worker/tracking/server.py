"""A tracking server of MLflow in the process of a script, for that process and what it starts.

Who doesn't show its token, such as another job on the node, is turned away. One request at a time: each is answered at
once, and threads can't be started while a process ends, when MLflow's client says that its run has.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from parallelrun_worker.script_api.metrics import MetricLog
from parallelrun_worker.tracking.answers import JobRun, Refused

MAX_BODY = 16 << 20
_WAIT_S = 5.0
"""For the rest of a request."""


def serve(settings: Mapping[str, Any]) -> tuple[int, str]:
    """Begin to serve the run of this process's job, in a thread; returns the port and the token.

    Args:
        settings: of the worker: `job_id`, `node`, `process`, `logs` and what the agent says of the `job`.

    Raises:
        OSError: no port can be opened.
    """
    token = secrets.token_urlsafe(32)
    artifacts = os.path.join(settings["logs"], "user", "artifacts", settings["node"], settings["process"])
    server = _Server(JobRun(settings, artifacts, MetricLog.of_this_process()), token)
    threading.Thread(target=server.serve_forever, name="mlflow", daemon=True).start()
    return server.server_address[1], token


class _Server(HTTPServer):
    def __init__(self, run: JobRun, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.run = run
        self.authorization = f"Bearer {token}".encode()

    def server_bind(self) -> None:
        """Bind, without the look-up of the host's name that the library does."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: whoever asked has gone."""


class _Request(BaseHTTPRequestHandler):
    """A request; its connection ends with the answer."""

    server: _Server
    timeout = _WAIT_S

    def _handle(self) -> None:
        credentials = self.headers.get("Authorization", "").encode("latin-1")
        if not hmac.compare_digest(credentials, self.server.authorization):
            self._answer(401, {"error_code": "UNAUTHENTICATED", "message": "This is the run of another job."})
            return
        try:
            self._answer(200, self.server.run.answer(self.command, *self._read()))
        except Refused as error:
            self._answer(error.status, {"error_code": error.code, "message": str(error)})

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle

    def _read(self) -> tuple[str, dict[str, Any]]:
        """The path of the request, and its fields, of its query or of its body."""
        parts = urlsplit(self.path)
        length = self.headers.get("Content-Length", "0")
        size = int(length) if length.isdecimal() else MAX_BODY + 1
        if size > MAX_BODY:
            raise Refused(f"A request has at most {MAX_BODY >> 20} MiB.", "BAD_REQUEST", 413)
        fields: dict[str, Any] = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if size:
            try:
                body = json.loads(self.rfile.read(size))
            except (ValueError, RecursionError):
                raise Refused("The body of the request is not JSON.", "BAD_REQUEST", 400) from None
            fields.update(body if isinstance(body, dict) else {})
        return parts.path, fields

    def _answer(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the script's output is its own."""
