"""An object as a file that is read in ranges, each with a request of its own."""

from __future__ import annotations

import io

from parallelrun_core.storage.objects.address import address_of
from parallelrun_core.storage.objects.clients import client_of
from parallelrun_core.storage.objects.trouble import in_plain_words


class ObjectFile(io.RawIOBase):
    """One version of an object: a read raises `Replaced` once there is another.

    Raises:
        StoreError: the object can't be asked for.
    """

    def __init__(self, url: str) -> None:
        import obstore

        super().__init__()
        self._url = url
        address = address_of(url)
        self._client, self._key = client_of(address.store), address.key
        with in_plain_words(url):
            meta = obstore.head(self._client, self._key)
        self.size = meta["size"]
        self._tag = meta["e_tag"]
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, at most so many; fewer only at the end."""
        import obstore

        left = max(0, self.size - self._at)
        count = left if size is None or size < 0 else min(size, left)
        if not count:
            return b""
        with in_plain_words(self._url):
            answer = obstore.get(
                self._client, self._key,
                options={"range": (self._at, self._at + count), **({"if_match": self._tag} if self._tag else {})},
            )  # fmt: skip
            data = bytes(answer.bytes())
        self._at += len(data)
        return data

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
