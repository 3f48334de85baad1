"""Limits of a server: how often its jobs may call a service that somebody else runs."""

from __future__ import annotations

from parallelrun.models import RateLimit
from parallelrun.resources.resource import Definition, Definitions, document_of


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
