"""Ranges of a file that a storage has opened; it has no descriptor that the operating system could be asked about."""

from __future__ import annotations

from io import SEEK_END
from typing import BinaryIO


def size_of(file: BinaryIO) -> int:
    """Return how many bytes the file has."""
    return file.seek(0, SEEK_END)


def read_at(file: BinaryIO, start: int, size: int) -> bytes:
    """Return at most so many bytes from there on; fewer only at the end of the file."""
    file.seek(start)
    return file.read(size)
