"""The client of one ParallelRun API.

from parallelrun import Client

with Client() as client:  # of PARALLELRUN_URL, or of what `parallelrun up` has started
    job = client.jobs.create("job.yml")
    job = client.jobs.wait(job.id)
    client.outputs.download(job.id, "parallel_run_step.txt")
"""

from __future__ import annotations

import os
from typing import Self

from parallelrun.errors import ConnectionFailed
from parallelrun.jobs import Jobs
from parallelrun.logs import Logs
from parallelrun.nodes import Nodes
from parallelrun.outputs import Outputs
from parallelrun.transport import RetryPolicy, Transport


class Client:
    """Synchronous, safe to share between threads; close it, or use it in a `with` statement.

    Args:
        url: where the API is, as in `http://127.0.0.1:8080`. When not given, what PARALLELRUN_URL says, else the
            cluster that `parallelrun up` has started.
        token: its bearer token; PARALLELRUN_TOKEN when not given. The cluster of `parallelrun up` has its own, so that
            variable is not about it.
        timeout_s: the longest silence in one request. Nothing here waits without a limit.
        retry: how often idempotent requests are repeated.

    Every method raises ConnectionFailed when the server can't be reached, and ApiError or one of its
    subclasses when it refuses.

    Raises:
        ConnectionFailed: no server is named, and none was started.
    """

    def __init__(
        self, url: str = "", token: str = "", *, timeout_s: float = 30.0, retry: RetryPolicy | None = None
    ) -> None:
        url, token = _which_server(url, token)
        self._transport = Transport(url, token, timeout_s=timeout_s, retry=retry)
        self.url = self._transport.url
        self.jobs = Jobs(self._transport)
        self.logs = Logs(self._transport)
        self.outputs = Outputs(self._transport)
        self.nodes = Nodes(self._transport)

    def is_ready(self) -> bool:
        """Whether the server can take jobs right now; False also when nobody answers. One try, a short one."""
        return self._transport.answers("/readyz")

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _which_server(url: str, token: str) -> tuple[str, str]:
    """The URL and token of the server that is meant."""
    url = url or os.environ.get("PARALLELRUN_URL", "")
    if url:
        return url, token or os.environ.get("PARALLELRUN_TOKEN", "")
    from parallelrun.embedded.background import running

    found = running()
    if found is None:
        raise ConnectionFailed("Which server? Give its URL, set PARALLELRUN_URL, or start one with `parallelrun up`.")
    return found.url, token or found.token
