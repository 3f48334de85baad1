"""What a user with nothing but curl does: submit a form, poll, download in pieces."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import httpx

_ENDED = ("completed", "failed", "canceled")
_WAIT_S = 10


class HttpUser:
    """Plain requests to one API; `with` it."""

    def __init__(self, url: str, token: str) -> None:
        self.token = token
        self.client = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=_WAIT_S + 20, trust_env=False
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def wait_until_ready(self, timeout_s: float = 180) -> None:
        """Ask until the server takes jobs; while it starts nobody may answer, or only the engine's proxy."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                if self.client.get("/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            assert time.monotonic() < deadline, f"not ready within {timeout_s} s"
            time.sleep(0.1)  # what is not there yet can't give a sign

    def post(self, spec: Mapping[str, object], code: bytes) -> httpx.Response:
        """Submit a job with its code."""
        return self.client.post(
            "/v1/jobs", data={"spec": json.dumps(spec)}, files={"code": ("code.zip", code, "application/zip")}
        )

    def submit(self, spec: Mapping[str, object], code: bytes) -> str:
        """Submit a job that is fine; returns its id."""
        answer = self.post(spec, code)
        assert answer.status_code == 202, answer.text
        assert answer.headers["Location"] == f"/v1/jobs/{answer.json()['id']}"
        return str(answer.json()["id"])

    def until(
        self, job_id: str, condition: Callable[[dict[str, Any]], bool], what: str, timeout_s: float = 300
    ) -> dict[str, Any]:
        """Poll until a job is as wanted; returns it. A job that has ended in some other way fails the test at once."""
        deadline = time.monotonic() + timeout_s
        known = 0
        while True:
            job = self._poll(job_id, known, deadline)
            if condition(job):
                return job
            assert job["state"] not in _ENDED or job["ended"] is None, f"{what}: the job has ended: {job}"
            assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}: {job}"
            known = job["version"]

    def ended(self, job_id: str, timeout_s: float = 300) -> dict[str, Any]:
        """Poll until a job has ended."""
        return self.until(job_id, lambda job: job["ended"] is not None, "the job ends", timeout_s)

    def completed(self, job_id: str, timeout_s: float = 300) -> dict[str, Any]:
        """Poll until a job has completed."""
        job = self.ended(job_id, timeout_s)
        assert job["state"] == "completed", job["failure"]
        return job

    def _poll(self, job_id: str, known: int, deadline: float) -> dict[str, Any]:
        while True:
            answer = self.client.get(f"/v1/jobs/{job_id}", params={"wait": _WAIT_S, "since": known})
            if answer.status_code in (429, 503) and time.monotonic() < deadline:
                time.sleep(float(answer.headers["Retry-After"]))
                continue
            assert answer.status_code == 200, answer.text
            return dict(answer.json())

    def download(self, job_id: str, name: str) -> bytes:
        """An output file, fetched in two ranges."""
        size = {entry["path"]: entry["bytes"] for entry in self._outputs(job_id)}[name]
        address, middle = f"/v1/jobs/{job_id}/outputs/{name}", size // 2
        first = self.client.get(address, headers={"Range": f"bytes=0-{middle - 1}"})
        rest = self.client.get(address, headers={"Range": f"bytes={middle}-", "If-Range": first.headers["ETag"]})
        assert (first.status_code, rest.status_code) == (206, 206)
        assert first.headers["Content-Range"] == f"bytes 0-{middle - 1}/{size}"
        assert len(first.content + rest.content) == size
        return first.content + rest.content

    def _outputs(self, job_id: str) -> list[dict[str, Any]]:
        return list(self.client.get(f"/v1/jobs/{job_id}/outputs").raise_for_status().json()["items"])

    def cancel_all(self) -> None:
        """Cancel what still runs."""
        for state in ("queued", "processing"):
            jobs = self.client.get("/v1/jobs", params={"status": state}).raise_for_status().json()["items"]
            for job in jobs:
                self.client.post(f"/v1/jobs/{job['id']}:cancel")

    def nodes(self) -> dict[str, str]:
        """The state of every node."""
        answer = self.client.get("/v1/nodes").raise_for_status().json()
        return {node["node"]: node["state"] for node in answer["items"]}


def zip_of(source: Path | Mapping[str, str]) -> bytes:
    """A zip of a folder's files, or of texts by name."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        if isinstance(source, Path):
            for path in sorted(source.rglob("*.py")):
                archive.write(path, path.relative_to(source))
        else:
            for name, text in source.items():
                archive.writestr(name, text)
    return packed.getvalue()
