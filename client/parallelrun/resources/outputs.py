"""The files of jobs: outputs, listed and downloaded complete; logs, as they are at the moment.

An output is downloaded next to its target, under a name that ends in `.part`. It gets its own name when it is complete
and, if the server has a hash of it, verified. A broken download continues where it broke off; with a hash also in a
later run, because nothing else says which file an earlier part belongs to.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import httpx

from parallelrun.errors import ApiError, ConnectionFailed
from parallelrun.http.retry import PATIENCE_S, RetryDeadline, patiently
from parallelrun.http.transport import Transport
from parallelrun.local_folder import local_folder
from parallelrun.models import Job, RemoteFile
from parallelrun.resources.resource import Resource, job_path, pages


@dataclass
class _Part:
    path: Path
    sha256: str
    """The hash of the whole file; empty if the server has none."""
    version: str = ""
    """The ETag of the file that this is a part of; empty until this run knows one."""

    @property
    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def is_verified(self) -> bool:
        """Return whether it matches the hash, if there is one."""
        if not self.sha256:
            return True
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256


class JobOutputs(Resource):
    """The output files of jobs."""

    def __init__(
        self,
        transport: Transport,
        *,
        patience_s: float = PATIENCE_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(transport)
        self._patience_s = patience_s
        self._sleep = sleep

    def list(self, job_id: str) -> list[RemoteFile]:
        """All output files of a job."""
        return list(self._all(job_path(job_id, "outputs"), RemoteFile))

    def elsewhere(self, job_id: str) -> dict[str, str]:
        """The URLs of the outputs that are in object stores, by name; that of the job itself, with its rows, by `""`.

        The server doesn't read them: fetch them from there.
        """
        return _elsewhere(self._transport.request("GET", job_path(job_id, "outputs"), idempotent=True))

    def download(
        self,
        job_id: str,
        path: str,
        folder: str | Path = ".",
        *,
        on_bytes: Callable[[int], None] | None = None,
    ) -> Path:
        """Download one file, and return its path here. An existing file is replaced.

        Args:
            path: a path from `list`; the file has the same path below `folder`.
            on_bytes: called after each chunk with the number of bytes that are here.

        Raises:
            InvalidInput: the folder is a URL.
            NotFound: there is no such file.
            UnsafePath: the path leads out of the folder.
            ConnectionFailed: the server was away for too long, or the file doesn't match its hash.
        """
        place = local_folder(folder, "folder")
        return self._download(self._job(job_id), path, place, on_bytes)

    def download_all(
        self,
        job_id: str,
        folder: str | Path = ".",
        *,
        on_elsewhere: Callable[[dict[str, str]], object] = lambda _: None,
    ) -> Iterator[Path]:
        """Download all output files of a job, as `download` does; yields the path of each when it is complete.

        Args:
            on_elsewhere: called with each page's answer to `elsewhere`.
        """
        place = local_folder(folder, "folder")
        job = self._job(job_id)
        for file in pages(
            self._transport, job_path(job_id, "outputs"), RemoteFile, call=self._asked,
            on_page=lambda page: on_elsewhere(_elsewhere(page)),
        ):  # fmt: skip
            yield self._download(job, file.path, place, None)

    def _job(self, job_id: str) -> Job:
        # Without patience: a mistyped URL should fail soon.
        return self._ask("GET", job_path(job_id), Job)

    def _asked(self, ask: Callable[[], Any]) -> Any:
        return patiently(ask, limit_s=self._patience_s, sleep=self._sleep)

    def _download(self, job: Job, path: str, folder: Path, on_bytes: Callable[[int], None] | None) -> Path:
        from parallelrun_core.untrusted.paths import relative_parts

        target = folder.joinpath(*relative_parts(path))
        part = _Part(target.with_name(target.name + ".part"), _sha256_of(job, path))
        if not part.sha256:
            part.path.unlink(missing_ok=True)  # it may be of any file
        resumed = part.path.exists()
        self._fetch_all(job.id, path, part, on_bytes)
        if not part.is_verified:
            part.path.unlink()
            if resumed:
                # An earlier run had begun with another file.
                self._fetch_all(job.id, path, part, on_bytes)
            if not resumed or not part.is_verified:
                raise ConnectionFailed(f"{path} does not match the server's sha256.")
        part.path.replace(target)
        return target

    def _fetch_all(self, job_id: str, path: str, part: _Part, on_bytes: Callable[[int], None] | None) -> None:
        patience = RetryDeadline(self._patience_s, sleep=self._sleep)
        while True:
            before = part.size
            try:
                self._fetch(job_id, path, part, on_bytes)
                return
            except httpx.TransportError as failure:
                error: ConnectionFailed | ApiError = self._transport.lost(failure)
            except (ConnectionFailed, ApiError) as failure:
                error = failure
            if part.size > before:
                patience.note_response()
            patience.check(error)
            patience.pause()

    def _fetch(self, job_id: str, path: str, part: _Part, on_bytes: Callable[[int], None] | None) -> None:
        """Download the rest of the file. An answer that is shorter than its length raises by itself."""
        have = part.size if part.sha256 or part.version else 0  # otherwise a mixture of two files would go unnoticed
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if part.version:
                headers["If-Range"] = part.version  # if the file has changed since, all of it is sent
        try:
            with self._transport.stream(job_path(job_id, "outputs", path), headers=headers) as response:
                if response.status_code != httpx.codes.PARTIAL_CONTENT:
                    have = 0
                version = response.headers.get("ETag", "")
                part.version = "" if version.startswith("W/") else version  # a weak one doesn't identify the bytes
                part.path.parent.mkdir(parents=True, exist_ok=True)
                with part.path.open("ab" if have else "wb") as file:
                    # As they come: chunks that were gathered first would be lost when the connection breaks.
                    for chunk in response.iter_bytes():
                        file.write(chunk)
                        have += len(chunk)
                        if on_bytes:
                            on_bytes(have)
        except ApiError as refusal:
            if refusal.status != httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            # All of it is here already.


def _sha256_of(job: Job, path: str) -> str:
    """The hash of a file, which the server has for the file with the rows only; empty for others."""
    if job.output is None:
        return ""
    listed = PurePosixPath(job.output.path).name
    output = job.spec.get("append_row_to", "")
    fields = job.spec.get("outputs", {}).get(output, {})
    if fields.get("path") or fields.get("type") == "uri_folder":
        listed = f"{output}/{listed}"
    return job.output.sha256 if path == listed else ""


def _elsewhere(page: dict[str, Any]) -> dict[str, str]:
    return {each["output"]: each["url"] for each in page.get("elsewhere", ())}


class JobLogs(Resource):
    """The logs of jobs."""

    def list(self, job_id: str) -> list[RemoteFile]:
        """All logs that exist so far."""
        return list(self._all(job_path(job_id, "logs"), RemoteFile))

    def read(self, job_id: str, path: str, *, tail: int | None = None) -> Iterator[bytes]:
        """The content of a log at this moment, in chunks.

        Args:
            path: a path from `list`.
            tail: only this many lines, the last ones.

        Raises:
            NotFound: there is no such log.
            ConnectionFailed: the connection broke.
        """
        params = {} if tail is None else {"tail": str(tail)}
        with self._transport.stream(job_path(job_id, "logs", path), params=params) as response:
            try:
                yield from response.iter_bytes()
            except httpx.TransportError as failure:
                raise self._transport.lost(failure) from failure
