"""Computes: named pools of like nodes, of a server."""

from __future__ import annotations

from typing import Any

from parallelrun.errors import InvalidInput
from parallelrun.models import Compute
from parallelrun.resources.resource import Definition, Definitions, document_of


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
