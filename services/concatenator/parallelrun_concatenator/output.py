"""The bytes of an output on their way: gathered in blocks, hashed, and written."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from mmap import mmap
from typing import NamedTuple

from parallelrun_core.storage.interface import NewFile

BLOCK_BYTES = 2 << 20  # large enough to keep the disk busy, small enough to stay in the processor's cache
_BLOCKS = 3
"""One that is being filled, and two that are hashed and written, each in a thread that doesn't wait for the other."""


class Merged(NamedTuple):
    length: int
    sha256: str


class Leaving(NamedTuple):
    """A block that is being hashed and written."""

    block: memoryview
    hashed: Future[None]
    written: Future[None]

    def wait(self) -> memoryview:
        """Return the block once it can be filled again."""
        self.hashed.result()
        self.written.result()
        return self.block


class BlockWriter:
    """Fills a new file block by block. Use it in a `with` statement, within that of the file.

    Hashing takes longest, so reading and writing go on at the same time.
    """

    def __init__(self, file: NewFile, progress: Callable[[int], None]) -> None:
        self.length = 0
        self._file = file
        self._progress = progress
        self._digest = hashlib.sha256()
        self._hasher, self._writer = ThreadPoolExecutor(1, "hash"), ThreadPoolExecutor(1, "write")
        self._leaving: deque[Leaving] = deque()
        self._block, self._filled = self._empty_block(), 0

    def __enter__(self) -> BlockWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._hasher.shutdown()
        self._writer.shutdown()

    def room(self, size: int) -> memoryview:
        """Return where the next bytes go: as many as are wanted, or fewer."""
        return self._block[self._filled : self._filled + size]

    def filled(self, count: int) -> None:
        """This many bytes are now where there was room."""
        self._filled += count
        if self._filled == len(self._block):
            self._let_go()
            self._block = self._empty_block()

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
        """Return how many bytes were added so far."""
        return self.length + self._filled

    def finish(self) -> Merged:
        """Write what is left, and make all of it durable; nothing can be added after that."""
        self._let_go()
        for each in self._leaving:
            each.wait()
        self._file.sync()
        return Merged(self.length, self._digest.hexdigest())

    def _let_go(self) -> None:
        full = self._block[: self._filled]
        hashed = self._hasher.submit(self._digest.update, full)
        self._leaving.append(Leaving(self._block, hashed, self._writer.submit(self._file.write, full)))
        self.length += self._filled
        self._filled = 0
        self._progress(self.length)

    def _empty_block(self) -> memoryview:
        if len(self._leaving) < _BLOCKS:
            return memoryview(mmap(-1, BLOCK_BYTES))  # at the beginning of a page, as a direct write wants it
        return self._leaving.popleft().wait()
