"""Reads ranges of files."""

import os
from typing import BinaryIO


def read_range(file: BinaryIO, start: int, end: int) -> bytes:
    """The bytes from `start` to `end`, or to the end of the file if it is shorter."""
    data = os.pread(file.fileno(), end - start, start)
    while data and len(data) < end - start:  # the system reads at most 2 GiB at once
        more = os.pread(file.fileno(), end - start - len(data), start + len(data))
        if not more:
            break
        data += more
    return data
