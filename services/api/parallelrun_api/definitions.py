"""Definitions that a cluster keeps by their names, as clients define, list and delete them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from parallelrun_core.documents.collection import Definitions, Named
from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.service import telemetry

_Value = TypeVar("_Value")
_Definition = TypeVar("_Definition", bound=Named)


class DefinitionService(Generic[_Definition]):
    """Defines, shows and deletes definitions of one kind. Safe to share between threads.

    A kind with rules of its own is a subclass, which checks more before it defines or deletes one.

    Args:
        noun: the kind, for the log.
        read: makes a definition of a document, by the `name` in the path. Raises InvalidInput.
    """

    def __init__(self, noun: str, catalog: Definitions[_Definition], read: Callable[..., _Definition]) -> None:
        self._noun = noun
        self._catalog = catalog
        self._reader = read

    def all(self) -> list[_Definition]:
        """Return all of them, by name; one whose file is damaged is left out, and logged."""
        return readable(self._noun, self._catalog.names(), self._catalog.get)

    def get(self, name: str) -> _Definition:
        """Return one of them. Raises NotFound."""
        return self._catalog.get(name)

    def put(self, name: str, document: object) -> tuple[_Definition, bool]:
        """Make a definition, or replace the one of this name, durably; returns it, and whether it is new.

        Raises:
            InvalidInput: something is wrong with it.
            RedisError: Redis is away, which knows what nodes can be had.
        """
        definition = self._read(name, document)
        return definition, self._catalog.define(definition)

    def remove(self, name: str) -> None:
        """Forget a definition.

        Raises:
            NotFound: there is none of this name.
            Conflict: a job that has not ended needs it, or a schedule.
            NewerSchema, OSError: nobody can tell whether a job needs it.
            RedisError: Redis is away, which knows what has not ended.
        """
        if name not in self._catalog:
            raise self._catalog.not_found(name)
        self._check_unused(name)
        self._catalog.remove(name)

    def _read(self, name: str, document: object) -> _Definition:
        """Return the definition in a document. Raises InvalidInput."""
        return self._reader(document, name=name)

    def _check_unused(self, name: str) -> None:
        """Raise Conflict if something needs a definition; nothing does, unless a kind says so."""


def readable(noun: str, names: Iterable[str], get: Callable[[str], _Value]) -> list[_Value]:
    """Return all definitions of these names that can be read; those that can't are logged, and deleted ones left out.

    Args:
        noun: the kind, for the log.
    """
    definitions = []
    for name in names:
        try:
            definitions.append(get(name))
        except (CorruptLog, NewerSchema, NotFound) as error:
            telemetry.logger().warning(f"{noun}_unreadable", error=error.message, **{noun: name})
    return definitions
