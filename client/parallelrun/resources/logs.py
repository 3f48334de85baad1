"""The logs of a job."""

from __future__ import annotations

from collections.abc import Iterator

import httpx

from parallelrun.http.transport import Transport
from parallelrun.models import RemoteFile
from parallelrun.resources.resource import job_path, pages


class JobLogs:
    """The logs of jobs."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, job_id: str) -> list[RemoteFile]:
        """All logs that exist so far."""
        return list(pages(self._transport, job_path(job_id, "logs"), RemoteFile))

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
