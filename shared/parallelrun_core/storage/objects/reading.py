"""An object as a file that is read in ranges, each with a request of its own."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from parallelrun_core.storage.interface import Replaced, Version
from parallelrun_core.storage.objects.address import Address, address_of
from parallelrun_core.storage.objects.clients import client_of
from parallelrun_core.storage.objects.meters import metered
from parallelrun_core.storage.objects.trouble import in_plain_words
from parallelrun_core.storage.objects.web import web_get, web_version

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta


def present_version(url: str, address: Address) -> Version:
    """The version of an object that is there now.

    Raises:
        StoreError: it can't be asked for.
    """
    if address.is_web:
        with metered(url, "head"):
            return web_version(url)
    import obstore

    with metered(url, "head"), in_plain_words(url):
        meta = obstore.head(client_of(address.store), address.key)
    return version_of(meta)


def version_of(meta: ObjectMeta) -> Version:
    """Return what tells this content of an object from another."""
    tag = meta["e_tag"] or meta["version"] or ""
    if tag and not tag.endswith('"'):
        tag = f'"{tag}"'  # Azure leaves the quotes out when it lists, and only then
    return Version(meta["size"], meta["last_modified"].timestamp(), tag)


class SeekableObject(io.RawIOBase):
    """A file whose position costs nothing to change: what is there is asked for when it is read."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = max(0, base + offset)
        return self._at


class ObjectFile(SeekableObject):
    """A version of an object: a read raises `Replaced` once there is another.

    Args:
        version: which one; by default the one that is there now, which takes a request to learn.

    Raises:
        StoreError: the object can't be asked for.
    """

    def __init__(self, url: str, version: Version | None = None) -> None:
        self._url = url
        address = address_of(url)
        self._address = address
        self._client = None if address.is_web else client_of(address.store)
        self._version = version or present_version(url, address)
        super().__init__(self._version.size_bytes)

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, at most so many; fewer only at the end."""
        remaining_bytes = max(0, self.size - self._at)
        count = remaining_bytes if size is None or size < 0 else min(size, remaining_bytes)
        data = self.fetch(self._at, count) if count else b""
        self._at += len(data)
        return data

    def fetch(self, start: int, count: int) -> bytes:
        """So many bytes from there on, which must be in the object. Many threads may do this at once.

        Raises:
            StoreError: the store doesn't give them.
            Replaced: there is another version now.
        """
        with metered(self._url, "get") as call, in_plain_words(self._url, is_listed=True):
            data = self._ask(range(start, start + count))
            call.bytes = len(data)
        if len(data) != count:
            raise Replaced(f"{self._url} has another size than when it was listed")
        return data

    def _ask(self, part: range) -> bytes:
        if self._client is None:  # some web servers only give whole files
            return web_get(self._url, self._version, part if len(part) < self.size else None).bytes()
        import obstore

        options: GetOptions = {"if_match": self._version.tag} if self._version.tag else {}
        if len(part) < self.size:
            options["range"] = (part.start, part.stop)
        return bytes(obstore.get(self._client, self._address.key, options=options).bytes())
