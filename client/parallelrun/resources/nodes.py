"""The nodes of a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from parallelrun.http.transport import Transport
from parallelrun.models import Node
from parallelrun.resources.resource import pages


class Nodes:
    """The nodes that a server knows."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> list[Node]:
        """All nodes, alive or not."""
        return list(pages(self._transport, "/v1/nodes", Node))

    def check(self, paths: Sequence[str] = ()) -> str:
        """Let every node check itself, and whether it can read these paths; returns the id of what nodes answer.

        Raises:
            InvalidInput: a path is outside of what jobs may use.
        """
        request = self._transport.request(
            "POST", "/v1/nodes:check", idempotent=True, body=lambda: {"json": {"paths": [*paths]}}
        )
        return str(request["id"])
