"""An object for small reads that follow each other: what is fetched at once grows with them, up to some MiB ahead."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, NamedTuple

from parallelrun_core.storage.objects.reading import ObjectFile, SeekableObject

_FIRST: Final = 64 << 10
"""What is fetched at once where nothing tells that more will be wanted."""
_MOST: Final = 4 << 20
_AHEAD: Final = 4
"""Requests for that much, at the same time, once so much was read in order."""


class _Block(NamedTuple):
    start: int
    data: bytes

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class StreamedObject(SeekableObject):
    """An `ObjectFile` that is read ahead; closes the file. It keeps the last two blocks: who looks for records steps
    back a little.

    A short jump forward counts as reading on, and what was jumped over is not fetched.
    """

    def __init__(self, file: ObjectFile) -> None:
        super().__init__(file.size)
        self._file = file
        self._window = _FIRST
        self._kept: deque[_Block] = deque([_Block(0, b"")], maxlen=2)
        self._coming: deque[tuple[int, int, Future[bytes]]] = deque()
        self._pool: ThreadPoolExecutor | None = None

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, at most so many; fewer only at the end."""
        remaining_bytes = max(0, self._file.size - self._at)
        count = remaining_bytes if size is None or size < 0 else min(size, remaining_bytes)
        parts = []
        while count:
            block = self._block_at(self._at, count)
            part = block.data[self._at - block.start :][:count]
            parts.append(part)
            self._at += len(part)
            count -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        self._forget()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
        self._file.close()
        super().close()

    def _block_at(self, at: int, size: int) -> _Block:
        for block in self._kept:
            if block.start <= at < block.end:
                return block
        while self._coming and self._coming[0][1] <= at:
            self._coming.popleft()[2].cancel()
        if self._coming and self._coming[0][0] <= at:
            start, _, coming = self._coming.popleft()
            block = _Block(start, coming.result())
        else:
            block = self._missing(at, size)
        self._kept.append(block)
        self._fetch_ahead(block.end)
        return block

    def _missing(self, at: int, size: int) -> _Block:
        gap = at - self._kept[-1].end
        self._window = min(2 * self._window, _MOST) if 0 <= gap < self._window and at else _FIRST
        self._forget()
        count = min(max(size, self._window), self._file.size - at)
        return _Block(at, self._file.fetch(at, count))

    def _fetch_ahead(self, at: int) -> None:
        if self._window < _MOST:
            return
        self._pool = self._pool or ThreadPoolExecutor(_AHEAD, "read-ahead")
        start = self._coming[-1][1] if self._coming else at
        while len(self._coming) < _AHEAD and start < self._file.size:
            end = min(start + _MOST, self._file.size)
            self._coming.append((start, end, self._pool.submit(self._file.fetch, start, end - start)))
            start = end

    def _forget(self) -> None:
        while self._coming:
            self._coming.pop()[2].cancel()
