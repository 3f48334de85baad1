"""Limits of a server: how often its jobs may call a service that somebody else runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from parallelrun.http.transport import Transport
from parallelrun.models import RateLimit
from parallelrun.resources.resource import as_model, pages

_PATH = "/v1/limits"


class Limits:
    """The limits of a server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, definition: Mapping[str, Any] | str | Path) -> RateLimit:
        """Define a limit, or define it anew.

        Args:
            definition: its document, or the path of a file with it, as YAML or JSON.

        Raises:
            InvalidInput: something is wrong with it.
        """
        from parallelrun_core.limits.definition import limit_of

        limit = limit_of(definition)
        body = limit.model_dump(mode="json", exclude_defaults=True)
        answer = self._transport.request("PUT", _path(limit.name), body=lambda: {"json": body}, idempotent=True)
        return as_model(answer, RateLimit)

    def list(self) -> list[RateLimit]:
        """Return all limits, by name."""
        return list(pages(self._transport, _PATH, RateLimit))

    def get(self, name: str) -> RateLimit:
        """Return one limit. Raises NotFound."""
        return as_model(self._transport.request("GET", _path(name), idempotent=True), RateLimit)

    def delete(self, name: str) -> None:
        """Forget a limit: calls that wait for it are refused. Raises NotFound."""
        self._transport.request("DELETE", _path(name), idempotent=False)


def _path(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"
