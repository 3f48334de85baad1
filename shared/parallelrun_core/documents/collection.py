"""A collection of documents: values of one type, each by its name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from parallelrun_core.documents.codecs import Codec
from parallelrun_core.documents.store import DocumentExists, DocumentMissing, DocumentStore, VersionMismatch
from parallelrun_core.errors import Conflict, NotFound
from parallelrun_core.problems import did_you_mean

T = TypeVar("T")

_MAX_UPDATES: Final = 100
"""Tries of an update beside others; each of them fails only because another one has succeeded."""
_MAX_LISTED: Final = 20
"""Names in a message."""


@dataclass(frozen=True, eq=False)
class Documents(Generic[T]):
    """Values of one type by name, durable. Safe to share between threads and processes.

    Methods raise OSError when the store can't be reached, and CorruptLog or NewerSchema for a value that can't be read.

    Args:
        store: where they are.
        codec: their form.
        noun: what one of them is, such as "compute"; for messages.
        create_hint: how to make one, such as "define one with …"; for messages.
        suffix: what the names in the store have behind those of the collection.
        is_name: which names count; others in the store are passed over.
    """

    store: DocumentStore
    codec: Codec[T]
    noun: str
    create_hint: str = ""
    suffix: str = ".json"
    is_name: Callable[[str], object] = bool

    def names(self) -> list[str]:
        """The names of all values, in order."""
        names = (name.removesuffix(self.suffix) for name in self.store.names() if name.endswith(self.suffix))
        return sorted(name for name in names if self.is_name(name))  # `gpu.json` is behind `gpu-large.json`

    def __contains__(self, name: str) -> bool:
        """Return whether there is a value of this name, readable or not."""
        return self.store.exists(self._key(name))

    def find(self, name: str) -> T | None:
        """Returns a value; None if there is none of this name."""
        with suppress(DocumentMissing):
            return self._read(name)[0]
        return None

    def get(self, name: str) -> T:
        """Returns a value.

        Raises:
            NotFound: there is none of this name; says what there is, and how to make one.
        """
        value = self.find(name)
        if value is None:
            raise self.not_found(name)
        return value

    def version(self, name: str) -> str:
        """Differs each time that a value is written, also when it is equal. Raises NotFound."""
        try:
            return self.store.version(self._key(name))
        except DocumentMissing as error:
            raise self.not_found(name) from error

    def put_if_absent(self, name: str, value: T, *, if_store_exists: bool = False) -> bool:
        """Write a value if there is none of this name; returns whether it was written.

        Args:
            if_store_exists: only if the store of the collection was not removed meanwhile.

        Raises:
            DocumentMissing: the store was removed.
        """
        try:
            self.store.create(self._key(name), self.codec.encode(value), if_store_exists=if_store_exists)
        except DocumentExists:
            return False
        return True

    def copy_if_absent(self, source: Documents[T], name: str) -> bool:
        """Copy a value of a collection on the same volume if there is none of its name here; returns whether it was.

        Raises:
            DocumentMissing: the other collection has none.
        """
        try:
            self.store.create_from(source.store, self._key(name))
        except DocumentExists:
            return False
        return True

    def put(self, name: str, value: T) -> bool:
        """Write a value in place of whatever there was; returns whether there was none."""
        return self.store.replace(self._key(name), self.codec.encode(value))

    def update(self, name: str, change: Callable[[T | None], T]) -> T:
        """Write what `change` makes of a value; no write of another process is lost in between.

        Args:
            change: called with the value, or None if there is none; again if another process was faster.

        Raises:
            Conflict: other processes were faster a hundred times.
        """
        key = self._key(name)
        for _ in range(_MAX_UPDATES):
            try:
                before, version = self._read(name)
            except DocumentMissing:
                value = change(None)
                if self.put_if_absent(name, value):
                    return value
                continue
            value = change(before)
            with suppress(VersionMismatch):
                self.store.replace(key, self.codec.encode(value), if_version=version)
                return value
        raise Conflict(f"The {self.noun} {name!r} is being changed by others all the time. Try again.")

    def remove(self, name: str) -> None:
        """Remove a value. Raises NotFound."""
        try:
            self.store.remove(self._key(name))
        except DocumentMissing as error:
            raise self.not_found(name) from error

    def not_found(self, name: str) -> NotFound:
        """The error for a name that isn't there."""
        return no_such(self.noun, name, self.names(), self.create_hint)

    def hint(self, missing_name: str) -> str:
        """Return what to do about a name that isn't there: what it may be a slip of, what there is, how to make one."""
        return names_hint(missing_name, self.names(), self.create_hint)

    def _key(self, name: str) -> str:
        return f"{name}{self.suffix}"

    def _read(self, name: str) -> tuple[T, str]:
        key = self._key(name)
        stored = self.store.read(key)
        label = f"{self.noun} {name!r} ({self.store.location(key)})"
        return self.codec.decode(stored.data, label), stored.version


class Named(Protocol):
    """A value that carries its own name."""

    @property
    def name(self) -> str: ...


Definition = TypeVar("Definition", bound=Named)


class Definitions(Documents[Definition]):
    """Values that carry their own names, such as the computes of a cluster."""

    def define(self, definition: Definition) -> bool:
        """Write a definition in place of the one of its name, durably; returns whether there was none."""
        return self.put(definition.name, definition)


def no_such(noun: str, missing_name: str, names: list[str], create_hint: str = "") -> NotFound:
    """The error for a name that isn't among `names`."""
    return NotFound(f"There is no {noun} {missing_name[:80]!r}: {names_hint(missing_name, names, create_hint)}.")


def names_hint(missing_name: str, names: list[str], create_hint: str = "") -> str:
    """Return what to do about a name that isn't among `names`, for messages."""
    listed = ", ".join(names[:_MAX_LISTED])
    if question := did_you_mean(missing_name, names):
        hint = f"{question} There are {listed}"
    else:
        hint = f"there are {listed}" if names else "there is none yet"
    return f"{hint}; {create_hint}" if create_hint else hint
