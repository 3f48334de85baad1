"""For operators of a server: who has used it, its disk usage, and pruning by the rules of retention."""

from __future__ import annotations

import builtins

from parallelrun.models import ClusterUsage, Sweep, UsageOfWeek
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
