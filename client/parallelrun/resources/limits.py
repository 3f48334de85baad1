"""Limits of a server on calls of services that somebody else runs, and quotas of the people who use it."""

from __future__ import annotations

import builtins
from urllib.parse import quote

from parallelrun.http.transport import Transport
from parallelrun.models import Quota, RateLimit
from parallelrun.resources.resource import Definition, Definitions, as_model, document_of, pages


class Limits(Definitions[RateLimit]):
    """The limits of a server. Calls that wait for one that is deleted are refused."""

    path = "/v1/limits"
    model = RateLimit

    def create(self, definition: Definition) -> RateLimit:
        """Define a limit, or define it anew.

        Args:
            definition: its document, or the path of a file with it, as YAML or JSON.

        Raises:
            InvalidInput: something is wrong with it.
        """
        from parallelrun_core.limits.definition import read_limit

        limit = read_limit(document_of(definition))
        return self._put(limit.name, limit.model_dump(mode="json", exclude_defaults=True))


_PATH = "/v1/quotas"


class Quotas:
    """The quotas of a server. Only those with the scope `admin` may change them."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def set(
        self,
        name: str,
        *,
        jobs: int | None = None,
        submissions_per_minute: int | None = None,
        slots: int | None = None,
        nodes: int | None = None,
        job_bytes: int | None = None,
    ) -> Quota:
        """Set the quota of an owner, or with the name `everybody` of those who have none of their own.

        Args:
            jobs: jobs that have not ended; None: any number.
            submissions_per_minute: jobs that are accepted in a minute; None: any number.
            slots, nodes: the most workers, and nodes with workers, at the same time; None: any number.
            job_bytes: bytes of the folders of jobs that have ended; None: any number.
        """
        body = {
            "jobs": jobs,
            "submissions_per_minute": submissions_per_minute,
            "slots": slots,
            "nodes": nodes,
            "job_bytes": job_bytes,
        }
        answer = self._transport.request("PUT", _path(name), body=lambda: {"json": body}, idempotent=True)
        return as_model(answer, Quota)

    def list(self) -> builtins.list[Quota]:
        """All of them, by name."""
        return [*pages(self._transport, _PATH, Quota)]

    def remove(self, name: str) -> None:
        """Forget a quota. Raises NotFound."""
        self._transport.request("DELETE", _path(name), idempotent=False)


def _path(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"
