"""A server's cluster: its nodes and its use; for operators disk usage, and pruning by the rules of retention."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from urllib.parse import quote

from parallelrun.models import ClusterUsage, Node, Sweep, UsageOfWeek
from parallelrun.resources.resource import Resource

_PATH = "/v1/admin"


class Admin(Resource):
    """The questions and orders of operators. Raises Forbidden for a token that is none of theirs."""

    def usage(self) -> ClusterUsage:
        """Measure the room that the cluster's root folder takes, by kind and by job."""
        return self._ask("GET", f"{_PATH}/usage", ClusterUsage)

    def prune(self, *, dry_run: bool = False) -> Sweep:
        """Have a master remove what retention doesn't keep, and what users have deleted; returns what that is.

        Args:
            dry_run: only say what would be removed.
        """
        return self._ask("POST", f"{_PATH}:prune", Sweep, {"dry_run": dry_run})


class Usage(Resource):
    """The use of slots and GPUs, by week and person."""

    def list(self) -> builtins.list[UsageOfWeek]:
        """All of it, the latest week first."""
        return [*self._all("/v1/usage", UsageOfWeek)]


class Nodes(Resource):
    """The nodes that a server knows."""

    def list(self) -> builtins.list[Node]:
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
