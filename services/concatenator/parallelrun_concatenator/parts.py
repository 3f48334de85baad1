"""Reads segments from part files, and checks that they are what was committed."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Protocol

from isal.isal_zlib import crc32

from parallelrun_concatenator.segments import Segment
from parallelrun_core.errors import CorruptLog

OPEN_PARTS = 200
WINDOW_BYTES = 1 << 16
SMALL_BYTES = 1 << 14
"""Segments up to this size are read many at once: a worker has written them one after the other."""
AT_ONCE = 128
"""So many segments are checked together, from no more parts than may be open."""


class Sink(Protocol):
    """Takes what is copied."""

    def room(self, size: int) -> memoryview: ...

    def filled(self, count: int) -> None: ...

    def write(self, data: bytes) -> int: ...


class PartFiles:
    """Part files, open for reading; not more at once than file descriptors allow."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[str, _Part] = OrderedDict()

    def copy(self, segments: Iterable[Segment], sink: Sink) -> None:
        """All of these segments, one after the other, into the sink.

        Raises:
            CorruptLog: one isn't what was committed; some of it may be in the sink.
        """
        following = iter(segments)
        while group := list(islice(following, AT_ONCE)):
            if max([segment.length for segment in group]) <= SMALL_BYTES:
                sink.write(self._read_small(group))
            else:
                for segment in group:
                    self._copy_one(segment, sink)

    def _read_small(self, group: list[Segment]) -> bytes:
        pieces = self._pieces(group)
        if list(map(crc32, pieces)) == [segment.crc for segment in group]:
            rows = b"".join(pieces)
            if len(rows) == sum([segment.length for segment in group]):  # no end of a file came in between
                return rows
        return b"".join(map(self.read, group))  # again one by one, to name the first that has a problem

    def _pieces(self, group: list[Segment]) -> list[bytes]:
        """The bytes of these segments, as far as there are any; none if a part can't be read."""
        pieces = []
        try:
            parts = {name: self._part(name) for name in {segment.part for segment in group}}
            for segment in group:
                part = parts[segment.part]
                begin = segment.offset - part.at
                end = begin + segment.length
                if begin < 0 or end > len(part.window):
                    pieces.append(part.read(segment.offset, segment.length))
                else:  # nearly all: a call for each of them would cost more than the rest
                    pieces.append(part.window[begin:end])
        except OSError:
            return []
        return pieces

    def _copy_one(self, segment: Segment, sink: Sink) -> None:
        if segment.length <= SMALL_BYTES:
            sink.write(self.read(segment))
            return
        fd, at, end, crc = self._part(segment.part).fd, segment.offset, segment.offset + segment.length, 0
        while at < end:
            room = sink.room(end - at)
            try:
                count = os.preadv(fd, [room], at)
            except OSError as error:
                raise _named(error, self._folder / segment.part) from None
            if not count:
                break
            crc = crc32(room[:count], crc)
            sink.filled(count)
            at += count
        if at < end or crc != segment.crc:
            raise _not_committed(segment)

    def read(self, segment: Segment) -> bytes:
        """All of a segment.

        Raises:
            CorruptLog: it isn't what was committed.
        """
        data = self._part(segment.part).read(segment.offset, segment.length)
        if crc32(data) != segment.crc or len(data) < segment.length:
            raise _not_committed(segment)
        return data

    def begin(self, segment: Segment, length: int) -> bytes:
        """The first bytes of a segment, unchecked."""
        return self._part(segment.part).read(segment.offset, min(length, segment.length))

    def close(self) -> None:
        for part in self._open.values():
            os.close(part.fd)
        self._open.clear()

    def _part(self, name: str) -> _Part:
        part = self._open.get(name)
        if part is None:
            part = self._open[name] = _Part(self._folder / name)
            if len(self._open) > OPEN_PARTS:
                os.close(self._open.popitem(last=False)[1].fd)
        else:
            self._open.move_to_end(name)
        return part


class _Part:
    """An open file, and the last window that was read of it."""

    __slots__ = ("_path", "at", "fd", "window")

    def __init__(self, path: Path) -> None:
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._path = path
        self.at = 0
        """Offset of the window."""
        self.window = b""

    def read(self, offset: int, length: int) -> bytes:
        begin = offset - self.at
        if begin >= 0 and begin + length <= len(self.window):
            return self.window[begin : begin + length]
        try:
            return self._read(offset, length)
        except OSError as error:
            raise _named(error, self._path) from None

    def _read(self, offset: int, length: int) -> bytes:
        if length > SMALL_BYTES:
            return _read_all(self.fd, offset, length)
        self.window, self.at = os.pread(self.fd, WINDOW_BYTES, offset), offset
        return self.window[:length]


def _read_all(fd: int, offset: int, length: int) -> bytes:
    """This many bytes, or all up to the end of the file; one call of the system reads no more than 2 GiB."""
    data = os.pread(fd, length, offset)
    if len(data) == length:
        return data
    pieces = [data]
    while data and (length := length - len(data)):
        offset += len(data)
        pieces.append(data := os.pread(fd, length, offset))
    return b"".join(pieces)


def _named(error: OSError, path: Path) -> OSError:
    """A read error with the name of the file, which the system doesn't give."""
    return OSError(error.errno, error.strerror, str(path))


def _not_committed(segment: Segment) -> CorruptLog:
    return CorruptLog(
        f"the rows of mini-batch {segment.mini_batch} in parts/{segment.part} (offset {segment.offset}, "
        f"{segment.length} bytes) are not what was committed"
    )
