"""Copies segments into one file: verified, synced, and visible only when it is whole."""

from __future__ import annotations

import hashlib
import os
import secrets
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import NamedTuple

from parallelrun_concatenator.segments import Segment
from parallelrun_core import failpoints
from parallelrun_core.errors import CorruptLog
from parallelrun_core.recordlog import sync_folder

_OPEN_PARTS = 200
_BUFFERS = 512
_BUFFERED_BYTES = 4 << 20


class Merged(NamedTuple):
    """What was written."""

    length: int
    sha256: str


def merge(segments: Iterable[Segment], parts: Path, target: Path, progress: Callable[[int], None]) -> Merged:
    """Write the segments to `target`, one behind the other.

    The file is built beside the target and renamed when it is synced, so a reader sees the whole output or none.
    Running it again gives the same bytes.

    Raises:
        CorruptLog: the rows of a segment are not what was committed.
        OSError: a part is missing, or the disk is full.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".merging-{parts.parent.name}-{secrets.token_hex(8)}")
    opened = _Parts(parts)
    digest = hashlib.sha256()
    length = 0
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            pending: list[memoryview] = []
            size = 0
            for segment in segments:
                rows = opened.rows(segment)
                digest.update(rows)
                pending.append(rows)
                size += len(rows)
                if len(pending) >= _BUFFERS or size >= _BUFFERED_BYTES:
                    length += _write(fd, pending, size)
                    pending, size = [], 0
                    progress(length)
            length += _write(fd, pending, size)
            failpoints.reach("concatenate.before_sync")
            os.fsync(fd)
        finally:
            os.close(fd)
            opened.close()
        failpoints.reach("concatenate.before_rename")
        os.rename(beside, target)
        failpoints.reach("concatenate.after_rename")
        sync_folder(target.parent)
    finally:
        beside.unlink(missing_ok=True)
    progress(length)
    return Merged(length, digest.hexdigest())


def _write(fd: int, pending: list[memoryview], size: int) -> int:
    written = os.writev(fd, pending) if pending else 0
    if written < size:  # the disk takes no more at once: go on with the rest, or be told why not
        rest = memoryview(b"".join(pending))[written:]
        while rest:
            rest = rest[os.write(fd, rest) :]
    return size


class _Parts:
    """Part files, mapped into memory; not more at once than file descriptors allow."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._maps: OrderedDict[str, memoryview] = OrderedDict()

    def rows(self, segment: Segment) -> memoryview:
        rows = self._map(segment.part)[segment.offset : segment.offset + segment.length]
        if len(rows) != segment.length or zlib.crc32(rows) != segment.crc:
            raise CorruptLog(
                f"the rows of mini-batch {segment.mini_batch} in parts/{segment.part} (offset {segment.offset}, "
                f"{segment.length} bytes) are not what was committed"
            )
        return rows

    def _map(self, part: str) -> memoryview:
        found = self._maps.get(part)
        if found is None:
            with open(self._folder / part, "rb") as file:
                try:
                    found = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
                except ValueError as error:
                    raise CorruptLog(f"parts/{part} is empty, but rows of it were committed") from error
            self._maps[part] = found
            if len(self._maps) > _OPEN_PARTS:
                self._maps.popitem(last=False)  # it is unmapped once nothing points into it
        else:
            self._maps.move_to_end(part)
        return found

    def close(self) -> None:
        self._maps.clear()
