"""Copies segments into one file: verified, synced, and visible only when it is whole."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Protocol

from parallelrun_concatenator.parts import Parts
from parallelrun_concatenator.segments import Segment
from parallelrun_core import failpoints
from parallelrun_core.recordlog import sync_folder

_BLOCK_BYTES = 1 << 20  # so small that it stays in the processor's cache from reading to writing
_SYNC_EVERY_BYTES = 64 << 20


class Merged(NamedTuple):
    """What was written."""

    length: int
    sha256: str


class Assembler(Protocol):
    """Makes the output of segments; the same one from the same ones."""

    def assemble(self, segments: Iterable[Segment], parts: Parts, output: Output) -> None:
        """Write all of them to the output."""


class OneBehindTheOther:
    """Lines need nothing but to be copied."""

    def assemble(self, segments: Iterable[Segment], parts: Parts, output: Output) -> None:
        for segment in segments:
            parts.copy(segment, output)


def merge(
    segments: Iterable[Segment],
    parts: Path,
    target: Path,
    progress: Callable[[int], None],
    assembler: Assembler | None = None,
) -> Merged:
    """Make `target` of the segments; lines are put one behind the other.

    The file is built beside the target and renamed when it is synced, so a reader sees the whole output or none.
    Running it again gives the same bytes.

    Raises:
        CorruptLog: the rows of a segment are not what was committed.
        OSError: a part is missing, or the disk is full.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".merging-{parts.parent.name}-{secrets.token_hex(8)}")
    opened = Parts(parts)
    try:
        with Output(beside, progress) as output:
            (assembler or OneBehindTheOther()).assemble(segments, opened, output)
            failpoints.reach("concatenate.before_sync")
            merged = output.finish()
        failpoints.reach("concatenate.before_rename")
        os.rename(beside, target)
        failpoints.reach("concatenate.after_rename")
        sync_folder(target.parent)
    finally:
        opened.close()
        beside.unlink(missing_ok=True)
    progress(merged.length)
    return merged


class Output:
    """A new file, block by block. `with` it.

    While a block is read and written the one before is hashed, which takes as long as all the rest; and what has been
    written goes to the disk meanwhile, so that there is little to wait for at the end.
    """

    def __init__(self, path: Path, progress: Callable[[int], None]) -> None:
        self.length = 0
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._progress = progress
        self._block, self._hashing = memoryview(bytearray(_BLOCK_BYTES)), memoryview(bytearray(_BLOCK_BYTES))
        self._filled = 0
        self._digest = hashlib.sha256()
        self._hasher, self._syncer = ThreadPoolExecutor(1, "hash"), ThreadPoolExecutor(1, "sync")
        self._hashed: Future[None] | None = None
        self._synced: Future[None] | None = None
        self._sync_at = _SYNC_EVERY_BYTES

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *_: object) -> None:
        self._hasher.shutdown()
        self._syncer.shutdown()
        os.close(self._fd)

    def room(self, wanted: int) -> memoryview:
        """Where the next bytes go: as many as are wanted, or fewer."""
        return self._block[self._filled : self._filled + wanted]

    def filled(self, count: int) -> None:
        """So many bytes are now where there was room."""
        self._filled += count
        if self._filled == len(self._block):
            self._write()

    def write(self, data: bytes | memoryview) -> int:
        """Add these bytes; returns how many they are."""
        end = self._filled + len(data)
        if end < len(self._block):
            self._block[self._filled : end] = data
            self._filled = end
            return len(data)
        rest = memoryview(data)
        while rest:
            room = self.room(len(rest))
            room[:] = rest[: len(room)]
            rest = rest[len(room) :]
            self.filled(len(room))
        return len(data)

    @property
    def size(self) -> int:
        """How many bytes were added so far."""
        return self.length + self._filled

    def finish(self) -> Merged:
        """Write what is left, and make all of it durable."""
        self._write()
        if self._hashed:
            self._hashed.result()
        if self._synced:
            self._synced.result()
        os.fsync(self._fd)
        return Merged(self.length, self._digest.hexdigest())

    def _write(self) -> None:
        rest = self._block[: self._filled]
        if self._hashed:
            self._hashed.result()
        self._hashed = self._hasher.submit(self._digest.update, rest)
        self.length += len(rest)
        while rest:  # a disk that takes no more at once takes the rest, or says why not
            rest = rest[os.write(self._fd, rest) :]
        self._block, self._hashing, self._filled = self._hashing, self._block, 0
        self._sync()
        self._progress(self.length)

    def _sync(self) -> None:
        """Bring what there is to the disk, unless that is going on."""
        if self.length < self._sync_at or (self._synced and not self._synced.done()):
            return
        if self._synced:
            self._synced.result()  # what goes wrong is told once, and only here
        self._synced = self._syncer.submit(os.fdatasync, self._fd)
        self._sync_at = self.length + _SYNC_EVERY_BYTES
