"""For operators of a server: who has used it, the room that is taken, and retention."""

from __future__ import annotations

import builtins

from parallelrun.http.transport import Transport
from parallelrun.models import ClusterUsage, Sweep, UsageOfWeek
from parallelrun.resources.resource import as_model, pages

_PATH = "/v1/admin"


class Admin:
    """The questions and orders of operators. Raises Forbidden for a token that is none of theirs."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def usage(self) -> ClusterUsage:
        """Measure the room that the cluster's root folder takes, by kind and by job."""
        return as_model(self._transport.request("GET", f"{_PATH}/usage", idempotent=True), ClusterUsage)

    def prune(self, *, dry_run: bool = False) -> Sweep:
        """Have a master remove what retention doesn't keep, and what users have deleted; returns what that is.

        Args:
            dry_run: only say what would be removed.
        """
        answer = self._transport.request(
            "POST", f"{_PATH}:prune", idempotent=True, body=lambda: {"json": {"dry_run": dry_run}}
        )
        return as_model(answer, Sweep)


class Usage:
    """The use of slots and GPUs, by week and person."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> builtins.list[UsageOfWeek]:
        """All of it, the latest week first."""
        return [*pages(self._transport, "/v1/usage", UsageOfWeek)]
