"""Datastores: named places in object stores, of a server or of this user's runs on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from parallelrun.errors import InvalidInput
from parallelrun.models import Datastore
from parallelrun.resources.resource import Definition, Definitions, document_of

if TYPE_CHECKING:
    from parallelrun_core.datastores.definition import Datastore as DatastoreDefinition


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
