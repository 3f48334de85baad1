"""Use of a server's cluster by its people."""

from __future__ import annotations

import builtins

from parallelrun.http.transport import Transport
from parallelrun.models import UsageOfWeek
from parallelrun.resources.resource import pages


class Usage:
    """The use of slots and GPUs, by week and person."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> builtins.list[UsageOfWeek]:
        """All of it, the latest week first."""
        return [*pages(self._transport, "/v1/usage", UsageOfWeek)]
