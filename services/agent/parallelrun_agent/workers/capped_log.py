"""The file that a worker's stdout or stderr goes to, kept from growing without limit.

Workers and their children write to the file itself: no byte passes through the agent, no worker waits for it, and a job
that prints nothing costs nothing. Now and then the agent checks the size and removes what exceeds the limit; the
writers append, so they go on at the new end. Beginning and end stay: causes are at the one, stacks at the other. Where
the file system can do it, blocks are removed from the middle, which doesn't affect what is written meanwhile.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

TRIM_EVERY_S: Final = 0.25
"""Seconds between two calls of `trim`, while nothing exceeds the limit."""
_TAIL_BYTES: Final = 16 << 10
_COLLAPSE_RANGE: Final = 0x08
"""A mode of Linux's fallocate(2), which Python doesn't offer."""


class CappedLog:
    """A file of at most `limit` bytes, and what is written between two calls of `trim`.

    Raises:
        OSError: it can't be opened.
    """

    def __init__(self, path: Path, limit: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._limit = max(limit - _TAIL_BYTES, 0)
        self._dropped = 0

    def add(self, text: str) -> None:
        """Add a line of the agent's own."""
        with suppress(OSError):  # a full disk; nothing depends on it
            os.write(self.fd, f"[parallelrun] {text}\n".encode())

    def trim(self) -> bool:
        """Remove what exceeds the limit; whether anything did."""
        try:
            return self._trim()
        except OSError:  # its folder is gone, or its disk: it is a log, and the agent has leases to renew
            return False

    def _trim(self) -> bool:
        size = os.fstat(self.fd).st_size
        if size <= self._limit + _TAIL_BYTES:
            return False
        block = os.fstatvfs(self.fd).f_bsize
        begin = self._limit // block * block
        length = -((begin + _TAIL_BYTES - size) // block) * block
        try:
            remove_blocks(self.fd, begin, length)
            self._limit = begin
        except OSError:
            # What is written between these two calls is dropped uncounted: a few kilobytes in gigabytes.
            length = size - self._limit
            os.ftruncate(self.fd, self._limit)
        self._dropped += length
        return True

    def close(self) -> None:
        """After the last writer's end. If bytes were dropped, note how many, then keep the last ones; a file without
        any goes, with its folder if that is empty then."""
        try:
            size = os.fstat(self.fd).st_size
            if not size:
                self._path.unlink(missing_ok=True)
                self._path.parent.rmdir()
            if self._dropped or size > self._limit + _TAIL_BYTES:
                tail = os.pread(self.fd, _TAIL_BYTES, max(self._limit, size - _TAIL_BYTES))
                dropped = self._dropped + size - self._limit - len(tail)
                os.ftruncate(self.fd, self._limit)
                os.write(self.fd, f"\n[parallelrun] {dropped:,} bytes were dropped here\n".encode() + tail)
        except OSError:
            pass  # it is a log: whatever its disk does, the rows matter more
        finally:
            os.close(self.fd)


def remove_blocks(fd: int, begin: int, length: int) -> None:
    """Remove blocks from the middle of a file; what follows them moves up.

    Raises:
        OSError: the file system can't, or these are not whole blocks.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if begin == 0 or libc.fallocate(fd, _COLLAPSE_RANGE, ctypes.c_int64(begin), ctypes.c_int64(length)):
        raise OSError(ctypes.get_errno(), "fallocate")
