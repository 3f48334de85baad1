"""Definitions that a server keeps: computes, datastores and limits. The other kinds have a module of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from parallelrun.errors import InvalidInput
from parallelrun.models import Compute, Datastore, RateLimit
from parallelrun.resources.resource import Definition, Definitions, document_of

if TYPE_CHECKING:
    from parallelrun_core.datastores.definition import Datastore as DatastoreDefinition


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
    from parallelrun_core.computes.catalog import definition_fields
    from parallelrun_core.computes.document import has_no_kind, read_definition

    if isinstance(document, dict) and has_no_kind(document):
        name = document.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidInput.at("/name", "this field is required")
        return name, document
    compute = read_definition(document)
    return compute.name, definition_fields(compute)


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


class AnyDatastores(Protocol):
    """The datastores of a server or of this machine."""

    def create(self, definition: Definition) -> Datastore: ...

    def list(self) -> list[Datastore]: ...

    def get(self, name: str) -> Datastore: ...

    def delete(self, name: str) -> None: ...


class Datastores(Definitions[Datastore]):
    """The datastores of a server. What is in the store of one that is deleted stays."""

    path = "/v1/datastores"
    model = Datastore

    def create(self, definition: Definition) -> Datastore:
        """Define a datastore, or define it anew.

        Args:
            definition: its document, or the path of a file with it, as YAML or JSON. It is checked here first, so a
                secret in it is not sent.

        Raises:
            InvalidInput: something is wrong with it.
            InvalidRequest: the server refuses it, as for a place that jobs may not use.
        """
        checked = read_document(definition)
        return self._put(checked.name, checked.model_dump(mode="json", exclude_defaults=True))


def read_document(definition: Definition) -> DatastoreDefinition:
    """Return the definition in a document or a file.

    Raises:
        InvalidInput: it can't be read, or something is wrong with it. No secret in it is repeated.
    """
    from parallelrun_core.datastores.document import read_definition

    try:
        document = document_of(definition)
    except InvalidInput as error:
        if isinstance(definition, Mapping) or isinstance(error.__cause__, OSError):
            raise
        raise InvalidInput.at("", f"{definition} can't be read as YAML or JSON") from None  # it could repeat a secret
    return read_definition(document)
