"""The interface of a store of documents: a folder today, a bucket with conditional writes as well."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, Self


class DocumentMissing(LookupError):
    """There is no document of this name."""


class DocumentExists(ValueError):
    """There is a document of this name already."""


class VersionMismatch(ValueError):
    """The document was replaced or removed since this version of it was read."""


class Stored(NamedTuple):
    """The bytes of a document, and which version of it they are."""

    data: bytes
    version: str
    """Differs after each write, also of equal bytes. Compare it, and read nothing into it."""


class DocumentStore(Protocol):
    """Named byte strings. Safe to share between threads, processes and nodes.

    Readers see a document as it was before a write or after it, never between. What a method has written is durable
    when it returns: a power cut takes neither it nor what it was to replace. Methods raise OSError when the store can't
    be reached. Names begin with no dot and have no slash.
    """

    def read(self, name: str) -> Stored:
        """Read a document.

        Raises:
            DocumentMissing: there is none of this name.
            CorruptLog: it is no document: larger than one can be, or a link or a pipe where a store refuses those.
        """
        ...

    def location(self, name: str) -> str:
        """Return where a document is, for messages: a path or a URL."""
        ...

    def version(self, name: str) -> str:
        """The version of a document, without reading it. Raises DocumentMissing."""
        ...

    def exists(self, name: str) -> bool:
        """Return whether there is a document of this name, readable or not."""
        ...

    def create(self, name: str, data: bytes, *, if_store_exists: bool = False) -> None:
        """Write a document that is not there yet; of several writers at once, one does.

        Args:
            if_store_exists: only into a store that has had documents, and was not removed since.

        Raises:
            DocumentExists: another writer was first; its document is durable, too.
            DocumentMissing: the store was removed.
        """
        ...

    def create_from(self, source: Self, name: str) -> None:
        """Create a document that another store on the same volume has under this name, without writing it again.

        Raises:
            DocumentExists: this store has one already; it is as durable.
            DocumentMissing: the other one has none.
        """
        ...

    def replace(self, name: str, data: bytes, *, if_version: str | None = None) -> bool:
        """Write a document, whether there is one of this name or not; returns whether there was none.

        Args:
            if_version: only if this is still its version.

        Raises:
            VersionMismatch: it is another one by now.
        """
        ...

    def remove(self, name: str) -> None:
        """Remove a document. Raises DocumentMissing."""
        ...

    def make(self) -> None:
        """Make the store before it has a document, so that it exists for `if_store_exists`."""
        ...

    def names(self) -> list[str]:
        """The names of the documents here, in order."""
        ...

    def child(self, name: str) -> Self:
        """The store below this one that has this name; it need not have any documents yet."""
        ...

    def children(self) -> list[str]:
        """The names of the stores below this one that have had documents, in order."""
        ...

    def remove_child(self, name: str) -> None:
        """Remove a store below this one with all that is in it; it is gone at once. Raises DocumentMissing."""
        ...

    def locked(self) -> AbstractContextManager[None]:
        """Hold the lock of this store: meanwhile nobody else has it, and nobody removes a store below this one.

        Who holds it replaces and removes nothing of this store itself: that waits for the lock.
        """
        ...
