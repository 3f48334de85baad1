"""A server's cluster: its nodes, computes, limits and use; for operators disk usage, and pruning by retention."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from parallelrun.errors import InvalidInput
from parallelrun.models import ClusterUsage, Compute, Node, RateLimit, Sweep, UsageOfWeek
from parallelrun.resources.resource import Definition, Definitions, Resource, document_of

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


class Computes(Definitions[Compute]):
    """The computes of a server. Nodes of one that is deleted are drained and given back."""

    path = "/v1/computes"
    model = Compute

    def create(self, definition: Definition) -> Compute:
        """Define a compute, or define it anew.

        Args:
            definition: its document, or the path of a file with it, as YAML or JSON. It is checked here first, unless
                only the server knows of which kind it is.

        Raises:
            InvalidInput: something is wrong with it.
            InvalidRequest: the server refuses it.
        """
        return self._put(*_checked(document_of(definition)))


def _checked(document: object) -> tuple[str, dict[str, Any]]:
    """Return the name of a compute, and its definition. Raises InvalidInput."""
    from parallelrun_core.computes.document import has_no_kind, read_definition
    from parallelrun_core.documents.codecs import definition_fields

    if isinstance(document, dict) and has_no_kind(document):
        name = document.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidInput.at("/name", "this field is required")
        return name, document
    compute = read_definition(document)
    return compute.name, definition_fields(compute)
