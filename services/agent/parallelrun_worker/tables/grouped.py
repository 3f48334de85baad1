"""The rows of a table grouped by keys: a folder that the shuffle writes once, and that every mini-batch reads from.

rows            frames: number of their source (4 bytes), length (8), rows in the source's own format
sources.json    the files that the rows are from, each with its header; empty if the rows don't depend on it
warnings.json   what a leader is to tell of the rows, a list as in `data_warnings.py`: who reads a group says nothing
groups.jsonl    a line for each group, sorted by keys: `[start, end, [keys]]`, a range of complete frames in `rows`

Rows of text are the records themselves, in UTF-8, without a header; those of Parquet files are Arrow IPC streams.

After all groups of rows, each file that could not be read is one more group, with nulls as keys, of one frame: the
source is `UNREAD`, and the rows are the message in UTF-8. So its mini-batch fails with that, each time.
"""

import json
import struct
from collections.abc import Iterator
from typing import BinaryIO

ROWS, SOURCES, WARNINGS, GROUPS = "rows", "sources.json", "warnings.json", "groups.jsonl"
UNREAD = -2
"""Stands for a source, whose numbers begin with 0; rows that don't depend on theirs have -1."""
_HEAD = struct.Struct("<iQ")
_GATHERED = 1 << 20

Source = tuple[str, list[str | None]]
"""Path of a file, and the fields of its header."""


class GroupWriter:
    """Writes rows that come sorted by group: neighbours of one group and source share a frame.

    Args:
        rows, groups: the files, open for writing; the caller makes them durable.
    """

    def __init__(self, rows: BinaryIO, groups: BinaryIO) -> None:
        self._rows, self._groups = rows, groups
        self._at = 0
        self._start = 0
        self._keys: list[str | None] | None = None
        self._source = -1
        self._frame: list[bytes] = []
        self._size = 0

    def add(self, source: int, record: bytes) -> None:
        if source != self._source or self._size >= _GATHERED:
            self._end_frame()
            self._source = source
        self._frame.append(record)
        self._size += len(record)

    def begin(self, keys: list[str | None]) -> None:
        """The next records are of another group."""
        self.finish()
        self._keys = keys

    def finish(self) -> None:
        self._end_frame()
        if self._keys is not None:
            self._groups.write(json.dumps([self._start, self._at, self._keys]).encode() + b"\n")
        self._start = self._at
        self._keys = None

    def _end_frame(self) -> None:
        if self._frame:
            self._rows.write(_HEAD.pack(self._source, self._size))
            self._rows.writelines(self._frame)
            self._at += _HEAD.size + self._size
        self._frame, self._size = [], 0


def read_group(path: str, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """The frames of one group: source and rows; neighbours of one source come as one.

    Raises:
        ValueError: the file does not hold them.
    """
    last, gathered = -1, list[bytes]()
    with open(path, "rb") as file:
        file.seek(start)
        while file.tell() < end:
            head = file.read(_HEAD.size)
            source, size = _HEAD.unpack(head) if len(head) == _HEAD.size else (-1, -1)
            rows = file.read(size) if 0 <= size <= end - file.tell() else b""
            if len(rows) != size:
                raise ValueError(f"{path}: not the group that was written from {start} to {end}")
            if source != last and gathered:
                yield last, b"".join(gathered)
                gathered = []
            last = source
            gathered.append(rows)
    if gathered:
        yield last, b"".join(gathered)
