"""Computes: named pools of like nodes, of a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from parallelrun.errors import InvalidInput
from parallelrun.models import Compute
from parallelrun.resource import as_model, pages
from parallelrun.transport import Transport

_PATH = "/v1/computes"


class Computes:
    """The computes of a server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, definition: Mapping[str, Any] | str | Path) -> Compute:
        """Define a compute, or define it anew.

        Args:
            definition: its document, or the path of a file with it, as YAML or JSON. It is checked here first.

        Raises:
            InvalidInput: something is wrong with it.
            InvalidRequest: the server refuses it.
        """
        from parallelrun_core.computes.catalog import shown

        checked = read_document(definition)
        body = shown(checked)
        answer = self._transport.request("PUT", _path(checked.name), body=lambda: {"json": body}, idempotent=True)
        return as_model(answer, Compute)

    def list(self) -> list[Compute]:
        """All of them, by name."""
        return list(pages(self._transport, _PATH, Compute))

    def get(self, name: str) -> Compute:
        """One of them. Raises NotFound."""
        return as_model(self._transport.request("GET", _path(name), idempotent=True), Compute)

    def delete(self, name: str) -> None:
        """Forget a compute; its nodes are drained and given back.

        Raises:
            NotFound: there is none of this name.
            Conflict: a job that has not ended runs there.
        """
        self._transport.request("DELETE", _path(name), idempotent=False)


def read_document(definition: Mapping[str, Any] | str | Path) -> Any:
    """The definition in a document or a file.

    Raises:
        InvalidInput: it can't be read, or something is wrong with it.
    """
    from parallelrun_core.computes.document import read_definition
    from parallelrun_core.spec.document import load_document

    if isinstance(definition, Mapping):
        return read_definition(dict(definition))
    file = Path(definition)
    try:
        text = file.read_bytes()
    except OSError as error:
        raise InvalidInput.at("", f"{file}: {error.strerror or error}") from error
    return read_definition(load_document(text))


def _path(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"
