"""The nodes of a cluster."""

from __future__ import annotations

from parallelrun.models import Node
from parallelrun.resource import pages
from parallelrun.transport import Transport


class Nodes:
    """The nodes that a server knows."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> list[Node]:
        """All nodes, alive or not."""
        return list(pages(self._transport, "/v1/nodes", Node))
