"""The limits of a cluster, as clients define and delete them."""

from __future__ import annotations

from pathlib import Path

from parallelrun_api.readable import readable
from parallelrun_core.limits.definition import Limit, limit_catalog, read_limit


class LimitService:
    """Defines, shows and deletes limits. Safe to share between threads."""

    def __init__(self, root: Path) -> None:
        self._catalog = limit_catalog(root)

    def all(self) -> list[Limit]:
        """Return all limits, by name; one whose file is damaged is left out, and logged."""
        return readable("limit", self._catalog.names(), self._catalog.get)

    def get(self, name: str) -> Limit:
        """Return one limit. Raises NotFound."""
        return self._catalog.get(name)

    def put(self, name: str, document: object) -> tuple[Limit, bool]:
        """Define a limit, or define it anew, durably; returns it, and whether it is new. Raises InvalidInput."""
        limit = read_limit(document, name=name)
        return limit, self._catalog.define(limit)

    def remove(self, name: str) -> None:
        """Forget a limit; calls that wait for it are refused. Raises NotFound."""
        self._catalog.remove(name)
