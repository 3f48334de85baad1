"""The client of one ParallelRun API.

from parallelrun import Client

with Client() as client:  # the server at PARALLELRUN_URL, or the cluster that `parallelrun up` started
    job = client.jobs.create("job.yml")
    job = client.jobs.wait(job.id)
    client.outputs.download(job.id, "parallel_run_step.txt")
"""

from __future__ import annotations

import os
from typing import Self
from urllib.parse import urlsplit

from parallelrun.errors import ConnectionFailed
from parallelrun.http.transport import RetryPolicy, Transport
from parallelrun.resources.accounts import Quotas, Tokens
from parallelrun.resources.assets import Assets
from parallelrun.resources.batch_endpoints import BatchDeployments, BatchEndpoints
from parallelrun.resources.cluster import Admin, Computes, Limits, Nodes, Usage
from parallelrun.resources.datastores import Datastores
from parallelrun.resources.job_insight import Pictures
from parallelrun.resources.jobs import Jobs
from parallelrun.resources.outputs import JobLogs, JobOutputs
from parallelrun.resources.schedules import Schedules


class Client:
    """Synchronous, safe to share between threads; close it, or use it in a `with` statement.

    Args:
        url: URL of the API, for example `http://127.0.0.1:8080`; by default PARALLELRUN_URL, else that of the cluster
            that `parallelrun up` started.
        token: its bearer token; by default PARALLELRUN_TOKEN. The cluster of `parallelrun up` needs none.
        timeout_s: the longest silence within one request. No request waits without a limit.
        retry: how often idempotent requests are repeated.

    Every method raises ConnectionFailed if the server can't be reached, and ApiError or one of its subclasses if it
    refuses the request.

    Raises:
        ConnectionFailed: no server is given, and none is running in the background.
    """

    def __init__(
        self, url: str = "", token: str = "", *, timeout_s: float = 30.0, retry: RetryPolicy | None = None
    ) -> None:
        url, token = server_to_use(url, token)
        self._transport = Transport(url, token, timeout_s=timeout_s, retry=retry)
        self.url = self._transport.url
        self.jobs = Jobs(self._transport)
        self.logs = JobLogs(self._transport)
        self.outputs = JobOutputs(self._transport)
        self.pictures = Pictures(self._transport)
        self.nodes = Nodes(self._transport)
        self.computes = Computes(self._transport)
        self.datastores = Datastores(self._transport)
        self.limits = Limits(self._transport)
        self.schedules = Schedules(self._transport)
        self.batch_endpoints = BatchEndpoints(self._transport)
        self.batch_deployments = BatchDeployments(self._transport)
        self.tokens = Tokens(self._transport)
        self.quotas = Quotas(self._transport)
        self.usage = Usage(self._transport)
        self.admin = Admin(self._transport)
        self.data = self.assets("data")
        self.models = self.assets("model")
        self.environments = self.assets("environment")
        self.components = self.assets("component")

    def assets(self, kind: str) -> Assets:
        """The assets of one kind."""
        return Assets(self._transport, kind)

    def is_ready(self) -> bool:
        """Return whether the server can accept jobs right now; False if it doesn't answer. One short try."""
        return self._transport.is_answered("/readyz")

    def sign_in_code(self) -> str:
        """A code that signs in one browser to the server's page, once, within ten minutes, in place of the token.

        Raises:
            NotFound: the server is of an earlier release.
        """
        return str(self._transport.request("POST", "/v1/session:code", idempotent=False)["code"])

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def server_to_use(url: str = "", token: str = "") -> tuple[str, str]:
    """The URL and token of a server: what is given, else the environment's, else of the cluster in the background.

    Whoever names that cluster by its URL needs no token either: it is this user's own.

    Raises:
        ConnectionFailed: there is none of these.
    """
    url = url or os.environ.get("PARALLELRUN_URL", "")
    token = token or os.environ.get("PARALLELRUN_TOKEN", "")
    if url and token:
        return url, token
    from parallelrun.background.state import running

    cluster = running()
    if url:
        return url, cluster.token if cluster and _is_same_server(url, cluster.url) else ""
    if cluster is None:
        raise ConnectionFailed(
            "No server given: pass its URL, set PARALLELRUN_URL, or start one with `parallelrun up`."
        )
    return cluster.url, token or cluster.token


def _is_same_server(url: str, other: str) -> bool:
    """Return whether both URLs name the same server of this machine."""
    try:
        return _place_of(url) == _place_of(other)
    except ValueError:  # no URL at all, which whoever asks there says in words
        return False


def _place_of(url: str) -> tuple[str, str, int | None, str]:
    parts = urlsplit(url)
    host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
    return parts.scheme, host, parts.port, parts.path.rstrip("/")
