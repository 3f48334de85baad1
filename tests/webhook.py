"""A server that is told of ends of jobs: it answers as a test says, and checks signatures by itself."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

KEY = "a key for tests"


class Told(NamedTuple):
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def said(self) -> dict[str, Any]:
        said = json.loads(self.body)
        assert isinstance(said, dict)
        return said

    def is_signed(self, key: str = KEY) -> bool:
        """As receivers check it, who know nothing of the sender's code."""
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + self.body
        expected = base64.b64encode(hmac.new(key.encode(), signed, hashlib.sha256).digest()).decode()
        return self.headers.get("webhook-signature") == f"v1,{expected}"


class Receiver:
    """Use it in a `with` statement. `statuses` are answered in order; the last one stays."""

    def __init__(self, *statuses: int, location: str = "") -> None:
        self.told: list[Told] = []
        self._statuses = list(statuses or (200,))
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.told.append(Told(self.path, headers, body))
                statuses = receiver._statuses
                self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/hook?of=jobs"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
