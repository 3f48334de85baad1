"""A tracking server that knows what we ask of MLflow's, in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Tracking:
    """What the server has been told."""

    uri: str = ""
    token: str = ""
    experiments: dict[str, str] = field(default_factory=dict)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    hides_runs: bool = False
    """As if others had not begun their runs yet when one asks."""
    always: bytes = b""
    """What is sent to everybody, if anything."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, method: str, given: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self.lock:
            return self._answer(method, given)

    def _answer(self, method: str, given: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, answer = 200, dict[str, Any]()
        match method:
            case "experiments/get-by-name" if given["experiment_name"] not in self.experiments:
                status, answer = 404, {"error_code": "RESOURCE_DOES_NOT_EXIST"}
            case "experiments/get-by-name":
                answer = {"experiment": {"experiment_id": self.experiments[given["experiment_name"]]}}
            case "experiments/create":
                self.experiments[given["name"]] = str(len(self.experiments))
                answer = {"experiment_id": self.experiments[given["name"]]}
            case "runs/search":
                job_id = given["filter"].split("'")[1]
                runs = [] if self.hides_runs else [run for run in self.runs.values() if run["job_id"] == job_id]
                answer = {"runs": [{"info": run} for run in runs]} if runs else {}
            case "runs/create":
                answer = {"run": {"info": self._begin(given)}}
            case "runs/update":
                self.runs[given["run_id"]] |= {"status": given["status"], "end_time": given["end_time"]}
            case "runs/delete":
                self.runs[given["run_id"]]["status"] = "DELETED"
            case _:
                status = 404
        return status, answer

    def _begin(self, given: dict[str, Any]) -> dict[str, Any]:
        tags = {tag["key"]: tag["value"] for tag in given["tags"]}
        run_id = f"run{len(self.runs)}"
        self.runs[run_id] = {
            "run_id": run_id, "status": "RUNNING", "name": given["run_name"],
            "job_id": tags["parallelrun.job_id"], "experiment": given["experiment_id"],
        }  # fmt: skip
        return self.runs[run_id]


@contextmanager
def tracking_server(token: str = "") -> Iterator[Tracking]:
    """A server on the loopback interface; it asks for the token, if there is one."""
    tracking = Tracking(token=token)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            self._reply(query)

        def do_POST(self) -> None:
            self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _reply(self, given: dict[str, Any]) -> None:
            if tracking.always:
                self.wfile.write(tracking.always)
                return
            status, answer = 401, dict[str, Any]()
            if not token or self.headers["Authorization"] == f"Bearer {token}":
                method = urlsplit(self.path).path.removeprefix("/api/2.0/mlflow/")
                status, answer = tracking.answer(method, given)
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        tracking.uri = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield tracking
        finally:
            server.shutdown()
