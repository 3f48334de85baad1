"""Limits of a server on calls of services that somebody else runs, and quotas of the people who use it."""

from __future__ import annotations

import builtins
from types import EllipsisType
from typing import TypeAlias
from urllib.parse import quote

from parallelrun.models import Quota, RateLimit
from parallelrun.resources.resource import Definition, Definitions, Resource, document_of


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
Limit: TypeAlias = int | EllipsisType | None
"""A number; None: no limit; `...`: as it is."""


class Quotas(Resource):
    """The quotas of a server. Only those with the scope `admin` may change them."""

    def set(
        self,
        name: str,
        *,
        jobs: Limit = ...,
        submissions_per_minute: Limit = ...,
        slots: Limit = ...,
        nodes: Limit = ...,
        job_bytes: Limit = ...,
    ) -> Quota:
        """Set limits of an owner, or with the name `everybody` of those who have no quota of their own.

        What isn't named stays as it is; None is no limit any more.

        Args:
            jobs: jobs that have not ended.
            submissions_per_minute: jobs that are accepted in a minute.
            slots, nodes: the most workers, and nodes with workers, at the same time.
            job_bytes: bytes of the folders of jobs that have ended.
        """
        limits = {
            "jobs": jobs,
            "submissions_per_minute": submissions_per_minute,
            "slots": slots,
            "nodes": nodes,
            "job_bytes": job_bytes,
        }
        body = {name: limit for name, limit in limits.items() if limit is not ...}
        return self._ask("PATCH", _path(name), Quota, body)

    def list(self) -> builtins.list[Quota]:
        """All of them, by name."""
        return [*self._all(_PATH, Quota)]

    def remove(self, name: str) -> None:
        """Forget a quota. Raises NotFound."""
        self._transport.request("DELETE", _path(name), idempotent=False)


def _path(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"
