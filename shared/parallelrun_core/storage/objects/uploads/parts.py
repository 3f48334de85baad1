"""Cuts what is written into parts, and hands each to a few threads that upload it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, NamedTuple

SMALL_BYTES: Final = 8 << 20
MAX_PARTS: Final = 10_000
"""Of an object."""


class Size(NamedTuple):
    until: int
    """The last part number that has this size."""
    part_bytes: int
    at_once: int
    """So many are on their way, while one more is filled."""


SIZES: tuple[Size, ...] = (Size(1_000, SMALL_BYTES, 3), Size(4_000, 16 << 20, 3), Size(MAX_PARTS, 40 << 20, 1))
"""At most 80 MiB are in memory, and an object may have more than 290 GB."""


def requests_for(size_bytes: int, part_bytes: int) -> int:
    """Return how many requests an upload takes: one, or one for each part, one to begin and one to complete it."""
    return 1 if size_bytes <= part_bytes else -(-size_bytes // part_bytes) + 2


class TooManyParts(OSError):
    """No more parts can be added to an object."""


class Parts:
    """Numbers parts from 1, and uploads them while more is written.

    Args:
        upload: `upload(number, content)`, called by threads of its own; what it returns is in `finish`.
    """

    def __init__(self, upload: Callable[[int, memoryview], str]) -> None:
        self._upload = upload
        self._pool = ThreadPoolExecutor(max(size.at_once for size in SIZES), "upload")
        self._leaving: deque[tuple[Future[str], bytearray]] = deque()
        self._tags: list[str] = []
        self._count = 0
        self._part = bytearray(SIZES[0].part_bytes)
        self._filled = 0

    def write(self, data: memoryview) -> None:
        """Add these bytes; waits while too much is on its way.

        Raises:
            OSError: an earlier part could not be uploaded, or there are too many.
        """
        while data:
            count = min(len(data), len(self._part) - self._filled)
            self._part[self._filled : self._filled + count] = data[:count]
            self._filled += count
            data = data[count:]
            if self._filled == len(self._part):
                self._let_go()

    def finish(self) -> list[str]:
        """Upload what is left (an empty part if there was nothing), and wait for all; returns what each returned.

        Raises:
            OSError: one of them failed.
        """
        if self._filled or not self._count:
            self._let_go()
        while self._leaving:
            self._wait()
        return self._tags

    def stop(self) -> None:
        """Begin no further upload, and wait for those on their way."""
        self._pool.shutdown(cancel_futures=True)

    def _let_go(self) -> None:
        if self._count == MAX_PARTS:
            raise TooManyParts(27, f"the output is larger than {MAX_PARTS:,} parts, the most that an object may have")
        self._count += 1
        full = memoryview(self._part)[: self._filled]
        self._leaving.append((self._pool.submit(self._upload, self._count, full), self._part))
        size = next((each for each in SIZES if self._count < each.until), SIZES[-1])
        spare = bytearray()
        while len(self._leaving) > size.at_once:
            spare = self._wait()
        self._part = spare if len(spare) == size.part_bytes else bytearray(size.part_bytes)
        self._filled = 0

    def _wait(self) -> bytearray:
        """Wait for the oldest part on its way; returns its buffer."""
        future, part = self._leaving.popleft()
        self._tags.append(future.result())
        return part
