"""Documents in a bucket with conditional writes: shows that the interface of stores needs no folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import MemoryStore, ObjectStore

from parallelrun_core.documents.store import DocumentExists, DocumentMissing, Stored, VersionMismatch

_LOCK = ".lock"
_MADE = ".made"


class BucketStore:
    """Documents below a prefix of a bucket."""

    def __init__(self, bucket: ObjectStore | None = None, prefix: str = "") -> None:
        self._bucket = bucket or MemoryStore()
        self._prefix = prefix

    def read(self, name: str) -> Stored:
        try:
            answer = obstore.get(self._bucket, self._key(name))
        except FileNotFoundError as error:
            raise DocumentMissing(name) from error
        return Stored(bytes(answer.bytes()), str(answer.meta["e_tag"]))

    def location(self, name: str) -> str:
        return f"memory://{self._key(name)}"

    def version(self, name: str) -> str:
        return self.read(name).version

    def exists(self, name: str) -> bool:
        try:
            self.read(name)
        except DocumentMissing:
            return False
        return True

    def create(self, name: str, data: bytes, *, if_store_exists: bool = False) -> None:
        if if_store_exists and not self._all_names():
            raise DocumentMissing(self._prefix)
        try:
            obstore.put(self._bucket, self._key(name), data, mode="create")
        except AlreadyExistsError as error:
            raise DocumentExists(name) from error

    def create_from(self, source: Self, name: str) -> None:
        self.create(name, source.read(name).data)

    def replace(self, name: str, data: bytes, *, if_version: str | None = None) -> bool:
        if if_version is None:
            return self._put(name, data)
        try:
            obstore.put(self._bucket, self._key(name), data, mode={"e_tag": if_version})
        except (PreconditionError, FileNotFoundError) as error:
            raise VersionMismatch(name) from error
        return False

    def _put(self, name: str, data: bytes) -> bool:
        while True:
            with suppress(DocumentExists):
                self.create(name, data)
                return True
            with suppress(DocumentMissing, VersionMismatch):
                return self.replace(name, data, if_version=self.version(name))

    def remove(self, name: str) -> None:
        self.read(name)
        obstore.delete(self._bucket, self._key(name))

    def make(self) -> None:
        obstore.put(self._bucket, self._key(_MADE), b"")

    def names(self) -> list[str]:
        return sorted(name for name in self._all_names() if "/" not in name and name[0] != ".")

    def child(self, name: str) -> Self:
        return type(self)(self._bucket, f"{self._prefix}{name}/")

    def children(self) -> list[str]:
        return sorted({name.partition("/")[0] for name in self._all_names() if "/" in name})

    def remove_child(self, name: str) -> None:
        child = self.child(name)
        names = child._all_names()
        if not names:
            raise DocumentMissing(name)
        with self.locked():
            obstore.delete(self._bucket, [f"{child._prefix}{each}" for each in names])

    @contextmanager
    def locked(self) -> Iterator[None]:
        while True:
            with suppress(DocumentExists):
                self.create(_LOCK, b"")
                break
        try:
            yield
        finally:
            obstore.delete(self._bucket, self._key(_LOCK))

    def _key(self, name: str) -> str:
        return f"{self._prefix}{name}"

    def _all_names(self) -> list[str]:
        entries = obstore.list(self._bucket, self._prefix or None).collect()
        return [str(entry["path"]).removeprefix(self._prefix) for entry in entries]
