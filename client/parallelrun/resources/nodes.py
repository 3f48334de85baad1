"""The nodes of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from parallelrun.models import Node
from parallelrun.resources.resource import Resource


class Nodes(Resource):
    """The nodes that a server knows."""

    def list(self) -> list[Node]:
        """All nodes, alive or not."""
        return list(self._all("/v1/nodes", Node))

    def drain(self, node: str) -> Node:
        """Let a node finish what it runs, return the rest to the queue, and end; returns the node as it is now.

        Raises:
            NotFound: no node of this name is alive.
        """
        return self._ask("POST", f"/v1/nodes/{quote(node, safe='')}:drain", Node)

    def check(self, paths: Sequence[str] = ()) -> str:
        """Let every node check itself, and whether it can read these paths; returns the id of what nodes answer.

        Raises:
            InvalidInput: a path is outside of what jobs may use.
        """
        request = self._transport.request(
            "POST", "/v1/nodes:check", idempotent=True, body=lambda: {"json": {"paths": [*paths]}}
        )
        return str(request["id"])
