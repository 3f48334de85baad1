"""A part of a file that is being fetched, for the code by which workers read: whatever it reads is there afterwards."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import BinaryIO, Final, cast

from parallelrun_agent.staging.new_object import NewObject
from parallelrun_agent.staging.parts import FilePart, Rest
from parallelrun_core.storage.interface import Replaced, Version
from parallelrun_core.storage.stores import storage_of
from parallelrun_worker.tables.elsewhere import Elsewhere
from parallelrun_worker.tables.heads import HeadRules, read_head
from parallelrun_worker.tables.text import after_newline, encoding_of
from parallelrun_worker.tables.unpacking import MOST_MAGIC_BYTES, compression_of

_MORE: Final = 64 << 10
_MUCH_MORE: Final = 8 << 20


class GrowingPart(Elsewhere):
    """A part, from its beginning on.

    Args:
        source: the file; only this uses it.
        new: where the part is written to.

    Attributes:
        end: how far it goes by now, in the file.
    """

    def __init__(self, source: BinaryIO, version: Version, new: NewObject, part: FilePart, url: str) -> None:
        super().__init__()
        self.size = version.size_bytes
        self.end = part.start
        self._start = part.start
        self._planned = part.end
        self._source = source
        self._new = new
        self._url = url
        self._version = version

    def begin(self) -> None:
        """Have all of it that is known.

        Raises:
            Replaced, OSError: see `fetching.fetch`.
        """
        storage_of(self._url).copy(self._url, self._version, self._new.fd, range(self._start, self._planned))
        self.end = self._planned

    def _fetch_more(self, size: int = _MORE) -> None:
        more = min(size, self.size - self.end)
        self._new.grow(more)
        self._source.seek(self.end)
        chunk = self._source.read(more)
        if len(chunk) < more:
            raise Replaced(f"{self._url} is shorter than it was when it was listed")
        view = memoryview(chunk)
        while view:
            written = os.pwrite(self._new.fd, view, self.end - self._start)
            view, self.end = view[written:], self.end + written

    @property
    def url(self) -> str:
        return self._url

    def fetch_all(self) -> None:
        """Have all of the file.

        Raises:
            Replaced, NoRoom, OSError: see `fetching.fetch`.
        """
        while self.end < self.size:
            self._fetch_more(_MUCH_MORE)

    def pread(self, size: int, at: int) -> bytes:
        if at >= self.size or size <= 0:
            return b""
        if at < self._start:
            self._source.seek(at)
            return self._source.read(min(size, self._start - at))
        while at >= self.end:
            self._fetch_more()
        return os.pread(self._new.fd, min(size, self.end - at), at - self._start)


def complete(part: GrowingPart, rest: Rest) -> None:
    """Have what follows its end and belongs to it.

    Raises:
        Replaced, NoRoom, OSError: see `fetching.fetch`.
    """
    file = cast(BinaryIO, part)
    if compression_of(part.pread(MOST_MAGIC_BYTES, 0), part.url):
        if rest.owns_all:
            part.fetch_all()
        return
    encoding = encoding_of(file, rest.text.encoding)
    if rest.has_header:
        text = rest.text
        rules = HeadRules(text.delimiter, text.multi_line, text.has_header, text.skip_lines, text.comment)
        with suppress(ValueError):  # the worker will say what is wrong with it
            read_head(part.pread, encoding, rules)
    if rest.record_at >= 0:
        width = encoding.width
        after_newline(file, -(-rest.record_at // width) * width - width, encoding)
