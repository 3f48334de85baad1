"""What a job put out, and how it gets here whole.

A file is downloaded beside its place, under a name that ends in `.part`, and gets its own name when it is
complete and, where the server names a hash, proven to be the same. A broken download goes on where it
broke off; with a hash also in a later run, because nothing else says what an earlier one was about.
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
from parallelrun.models import Job, RemoteFile
from parallelrun.patience import PATIENCE_S, Patience, patiently
from parallelrun.resource import as_model, job_path, pages
from parallelrun.transport import Transport


@dataclass
class _Part:
    """What is here of a file."""

    path: Path
    sha256: str
    """The hash that the whole file has to have; empty when the server names none."""
    version: str = ""
    """The ETag of the file that it is a part of, as far as this run has heard of one."""

    @property
    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def is_as_named(self) -> bool:
        """Whether it has the hash, if there is one."""
        if not self.sha256:
            return True
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256


class Outputs:
    """The files that jobs put out."""

    def __init__(
        self,
        transport: Transport,
        *,
        patience_s: float = PATIENCE_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._transport = transport
        self._patience_s = patience_s
        self._sleep = sleep

    def list(self, job_id: str) -> list[RemoteFile]:
        """All files that the job has put out."""
        return list(pages(self._transport, job_path(job_id, "outputs"), RemoteFile))

    def download(
        self,
        job_id: str,
        path: str,
        folder: str | Path = ".",
        *,
        on_bytes: Callable[[int], None] | None = None,
    ) -> Path:
        """Fetch one file, and return where it is now. What was there before is replaced.

        Args:
            path: as `list` has it; kept below `folder`.
            on_bytes: told how many bytes are here, again and again.

        Raises:
            NotFound: there is no such file.
            UnsafePath: the path leads out of the folder.
            ConnectionFailed: the server stayed away, or what came isn't what the server says it has.
        """
        return self._download(self._job(job_id), path, Path(folder), on_bytes)

    def download_all(self, job_id: str, folder: str | Path = ".") -> Iterator[Path]:
        """Fetch all files that the job has put out, as `download` does it; yields where they are as they arrive."""
        job = self._job(job_id)
        for file in pages(self._transport, job_path(job_id, "outputs"), RemoteFile, asked=self._asked):
            yield self._download(job, file.path, Path(folder), None)

    def _job(self, job_id: str) -> Job:
        # Without patience: who has mistyped the server's address should hear of it soon.
        return as_model(self._transport.request("GET", job_path(job_id), idempotent=True), Job)

    def _asked(self, ask: Callable[[], Any]) -> Any:
        return patiently(ask, limit_s=self._patience_s, sleep=self._sleep)

    def _download(self, job: Job, path: str, folder: Path, on_bytes: Callable[[int], None] | None) -> Path:
        from parallelrun_core.paths import relative_parts

        target = folder.joinpath(*relative_parts(path))
        part = _Part(target.with_name(target.name + ".part"), _sha256_of(job, path))
        if not part.sha256:
            part.path.unlink(missing_ok=True)  # of whatever file it is
        resumed = part.path.exists()
        self._fetch_all(job.id, path, part, on_bytes)
        if not part.is_as_named:
            part.path.unlink()
            if resumed:
                # The beginning was of an older run's file.
                self._fetch_all(job.id, path, part, on_bytes)
            if not resumed or not part.is_as_named:
                raise ConnectionFailed(f"{path} doesn't have the hash that the server names.")
        part.path.replace(target)
        return target

    def _fetch_all(self, job_id: str, path: str, part: _Part, on_bytes: Callable[[int], None] | None) -> None:
        patience = Patience(self._patience_s, sleep=self._sleep)
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
                patience.heard()
            patience.check(error)
            patience.pause()

    def _fetch(self, job_id: str, path: str, part: _Part, on_bytes: Callable[[int], None] | None) -> None:
        """Fetch what is missing of the file as it is now. An answer that ends before its length raises by itself."""
        have = part.size if part.sha256 or part.version else 0  # else nobody would see that two were mixed
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if part.version:
                headers["If-Range"] = part.version  # all of the file comes when it is another one by now
        try:
            with self._transport.stream(job_path(job_id, "outputs", path), headers=headers) as response:
                if response.status_code != httpx.codes.PARTIAL_CONTENT:
                    have = 0
                version = response.headers.get("ETag", "")
                part.version = "" if version.startswith("W/") else version  # a weak one says nothing of bytes
                part.path.parent.mkdir(parents=True, exist_ok=True)
                with part.path.open("ab" if have else "wb") as file:
                    # As they come: what is gathered into larger pieces first is lost when the connection breaks.
                    for chunk in response.iter_bytes():
                        file.write(chunk)
                        have += len(chunk)
                        if on_bytes:
                            on_bytes(have)
        except ApiError as refusal:
            if refusal.status != httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            # There is nothing behind what is here.


def _sha256_of(job: Job, path: str) -> str:
    """The hash that the server names for a file: for the one with the rows. Empty when it names none."""
    if job.output is None:
        return ""
    listed = PurePosixPath(job.output.path).name
    output = job.spec.get("append_row_to", "")
    given = job.spec.get("outputs", {}).get(output, {})
    if given.get("path") or given.get("type") == "uri_folder":
        listed = f"{output}/{listed}"
    return job.output.sha256 if path == listed else ""
