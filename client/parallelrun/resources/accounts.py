"""The people who use a server: their tokens and their quotas."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import TypeAlias

from parallelrun.models import NewToken, Quota, Token
from parallelrun.resources.resource import NamedThings

Limit: TypeAlias = int | EllipsisType | None
"""A number; None: no limit; `...`: as it is."""


class Quotas(NamedThings[Quota]):
    """The quotas of a server. Only those with the scope `admin` may change them."""

    path = "/v1/quotas"
    model = Quota

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
        return self._ask("PATCH", self.url(name), Quota, body)

    def remove(self, name: str) -> None:
        """Forget a quota. Raises NotFound."""
        self._remove(name)


class Tokens(NamedThings[Token]):
    """The tokens that a server has made. Only those with the scope `admin` may use this."""

    path = "/v1/tokens"
    model = Token

    def create(
        self, name: str, *, scopes: Sequence[str] = ("submit",), days: float = 0.0, replace: bool = False
    ) -> NewToken:
        """Make a token for a person or a service. Its text is in the answer, and nobody can show it again.

        Args:
            name: the owner of what is made with it.
            scopes: `read`, `submit` or `admin`; each one has those before it.
            days: days for which it is valid; 0: until it is revoked.
            replace: in place of the token of this name, which is not valid any more then.

        Raises:
            Conflict: there is one of this name, or the server makes none.
            Unauthorized: the token of this client may not.
        """
        body = {"scopes": list(scopes), "days": days, "replace": replace}
        return self._ask("PUT", self.url(name), NewToken, body, idempotent=False)

    def revoke(self, name: str) -> None:
        """Let nobody in with this token any more. Raises NotFound."""
        self._remove(name)
