"""Datastores: named places in object stores, of a server or of this user's runs on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from parallelrun.errors import InvalidInput
from parallelrun.http.transport import Transport
from parallelrun.models import Datastore
from parallelrun.resources.resource import as_model, pages

_PATH = "/v1/datastores"


class AnyDatastores(Protocol):
    """The datastores of a server or of this machine."""

    def create(self, definition: Mapping[str, Any] | str | Path) -> Datastore: ...

    def list(self) -> list[Datastore]: ...

    def get(self, name: str) -> Datastore: ...

    def delete(self, name: str) -> None: ...


class Datastores:
    """The datastores of a server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, definition: Mapping[str, Any] | str | Path) -> Datastore:
        """Define a datastore, or define it anew.

        Args:
            definition: its document, or the path of a file with it, as YAML or JSON. It is checked here first, so a
                secret in it is not sent.

        Raises:
            InvalidInput: something is wrong with it.
            InvalidRequest: the server refuses it, as for a place that jobs may not use.
        """
        checked = read_document(definition)
        body = checked.model_dump(mode="json", exclude_defaults=True)
        answer = self._transport.request("PUT", _path(checked.name), body=lambda: {"json": body}, idempotent=True)
        return as_model(answer, Datastore)

    def list(self) -> list[Datastore]:
        """All of them, by name."""
        return list(pages(self._transport, _PATH, Datastore))

    def get(self, name: str) -> Datastore:
        """Return one of them. Raises NotFound."""
        return as_model(self._transport.request("GET", _path(name), idempotent=True), Datastore)

    def delete(self, name: str) -> None:
        """Forget a datastore; what is in the store stays.

        Raises:
            NotFound: there is none of this name.
            Conflict: a job that has not ended uses it.
        """
        self._transport.request("DELETE", _path(name), idempotent=False)


def read_document(definition: Mapping[str, Any] | str | Path) -> Any:
    """The definition in a document or a file.

    Raises:
        InvalidInput: it can't be read, or something is wrong with it. No secret in it is repeated.
    """
    from parallelrun_core.datastores.document import read_definition
    from parallelrun_core.untrusted.document import load_document

    if isinstance(definition, Mapping):
        return read_definition(dict(definition))
    file = Path(definition)
    try:
        text = file.read_bytes()
    except OSError as error:
        raise InvalidInput.at("", f"{file}: {error.strerror or error}") from error
    try:
        document = load_document(text)
    except InvalidInput:
        raise InvalidInput.at("", f"{file} can't be read as YAML or JSON") from None  # a line of it could be a secret
    return read_definition(document)


def _path(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"
