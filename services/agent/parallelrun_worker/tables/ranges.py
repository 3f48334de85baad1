"""Reads ranges of files, also of those that are elsewhere."""

import os
from typing import BinaryIO

from parallelrun_worker.tables.elsewhere import Elsewhere


def read_some(file: BinaryIO, size: int, at: int) -> bytes:
    """Some of the bytes from a place on, at most so many; none only at the end of the file."""
    return file.pread(size, at) if isinstance(file, Elsewhere) else os.pread(file.fileno(), size, at)


def size_of(file: BinaryIO) -> int:
    """Return how many bytes the file has."""
    return file.size if isinstance(file, Elsewhere) else os.fstat(file.fileno()).st_size


def read_range(file: BinaryIO, start: int, end: int) -> bytes:
    """The bytes from `start` to `end`, or to the end of the file if it is shorter."""
    data = read_some(file, end - start, start)
    while data and len(data) < end - start:  # the system reads at most 2 GiB at once
        more = read_some(file, end - start - len(data), start + len(data))
        if not more:
            break
        data += more
    return data
