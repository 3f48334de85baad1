"""Computes: named pools of like nodes, of a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from parallelrun.errors import InvalidInput
from parallelrun.http.transport import Transport
from parallelrun.models import Compute
from parallelrun.resources.resource import as_model, pages

_PATH = "/v1/computes"


class Computes:
    """The computes of a server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, definition: Mapping[str, Any] | str | Path) -> Compute:
        """Define a compute, or define it anew.

        Args:
            definition: its document, or the path of a file with it, as YAML or JSON. It is checked here first, unless
                only the server knows of which kind it is.

        Raises:
            InvalidInput: something is wrong with it.
            InvalidRequest: the server refuses it.
        """
        name, body = read_document(definition)
        answer = self._transport.request("PUT", _path(name), body=lambda: {"json": body}, idempotent=True)
        return as_model(answer, Compute)

    def list(self) -> list[Compute]:
        """All of them, by name."""
        return list(pages(self._transport, _PATH, Compute))

    def get(self, name: str) -> Compute:
        """Return one of them. Raises NotFound."""
        return as_model(self._transport.request("GET", _path(name), idempotent=True), Compute)

    def delete(self, name: str) -> None:
        """Forget a compute; its nodes are drained and given back.

        Raises:
            NotFound: there is none of this name.
            Conflict: a job that has not ended runs there.
        """
        self._transport.request("DELETE", _path(name), idempotent=False)


def read_document(definition: Mapping[str, Any] | str | Path) -> tuple[str, dict[str, Any]]:
    """The name of a compute, and its definition, in a document or a file.

    Raises:
        InvalidInput: it can't be read, or something is wrong with it.
    """
    from parallelrun_core.computes.catalog import definition_fields
    from parallelrun_core.computes.document import has_no_kind, read_definition
    from parallelrun_core.untrusted.document import load_document

    document = dict(definition) if isinstance(definition, Mapping) else load_document(_text(Path(definition)))
    if isinstance(document, dict) and has_no_kind(document):
        name = document.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidInput.at("/name", "this field is required")
        return name, document
    checked = read_definition(document)
    return checked.name, definition_fields(checked)


def _text(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput.at("", f"{file}: {error.strerror or error}") from error


def _path(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"
