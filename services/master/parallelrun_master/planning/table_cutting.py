"""Cuts the files of a table into pieces, each the data of one mini-batch.

Text is cut by bytes and not read: a piece owns the records that begin in it, and the worker finds where they do
(reference §4.5). Only where quoted fields may hold newlines, or rows are counted, is it searched for the beginnings of
records. Parquet files are cut by their footers: row groups, and rows in them. No piece goes beyond its file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

from parallelrun_core.errors import InvalidInput
from parallelrun_core.message import Piece
from parallelrun_core.mltable.plan import InputPlan
from parallelrun_core.spec.fields import MiniBatchSize
from parallelrun_master.planning.record_bits import Offsets
from parallelrun_master.planning.record_scan import form_of, record_starts

EMPTY_UP_TO: Final = 3
"""A file of up to so many bytes holds at most a byte order mark."""


class RowWindow:
    """Which rows of the whole input `skip` and `take` leave, while the rows are counted file by file."""

    def __init__(self, first: int, end: int | None) -> None:
        self.first = first
        self._end = end
        self.seen = 0
        """How many rows have been counted."""

    @property
    def is_over(self) -> bool:
        """No row from here on is wanted."""
        return self._end is not None and self.seen >= self._end

    def next(self, rows: int) -> range:
        """Which of the next rows are wanted, of which there are this many."""
        low = min(rows, max(0, self.first - self.seen))
        high = rows if self._end is None else max(low, min(rows, self._end - self.seen))
        return range(low, high)


class TableCutter:
    """Cuts the files of one input, one after another."""

    def __init__(self, plan: InputPlan, size: MiniBatchSize) -> None:
        self._plan = plan
        self._bytes = size.bytes
        self._rows = size.number if size.unit == "rows" else None
        wanted = plan.rows_wanted()
        self._window = RowWindow(*(wanted or (0, None)))
        self._looks_inside = self._rows is not None or wanted is not None or bool(plan.read.get("support_multi_line"))
        self._is_first_file = True

    def pieces(self, paths: Iterable[bytes]) -> Iterator[Piece | None]:
        """Yield the pieces of these files, in order, and None now and then while a file is searched.

        Raises:
            OSError: a file can't be read.
            InvalidInput: a file is not what the table says.
        """
        for path in paths:
            if self._window.is_over:
                return
            try:
                yield from self._file(path)
            except OSError as error:
                if error.errno is not None and error.filename is None:  # a read that fails names no file
                    error.filename = os.fsdecode(path)
                raise

    def _file(self, path: bytes) -> Iterator[Piece | None]:
        if self._plan.kind not in ("delimited", "json_lines"):
            yield from self._parquet(path)
        elif self._looks_inside:
            yield from self._records(path)
        else:
            size = os.stat(path).st_size
            for start in range(0, size, self._bytes):
                yield Piece(path, start, min(start + self._bytes, size))

    def _records(self, path: bytes) -> Iterator[Piece | None]:
        """Pieces that begin and end where a record does."""
        read = self._plan.read
        with open(path, "rb") as file:
            end = os.fstat(file.fileno()).st_size
            multi_line = bool(read.get("support_multi_line"))
            form = form_of(file, read["encoding"], read.get("delimiter", ","), multi_line=multi_line)
            skips_header = self._has_header(end)
            cutter = RecordCutter(path, self._window, rows=self._rows, size=self._bytes)
            for starts in record_starts(file, form):
                yield from cutter.add(starts.part(1, len(starts)) if skips_header and len(starts) else starts)
                skips_header = skips_header and not len(starts)
                yield None
                if cutter.is_over:
                    break
            yield from cutter.finish(end)

    def _has_header(self, size: int) -> bool:
        if self._plan.kind != "delimited":
            return False
        mode = self._plan.read["header"]
        is_first, self._is_first_file = self._is_first_file, self._is_first_file and size <= EMPTY_UP_TO
        return bool(mode.startswith("all_files") or (mode == "from_first_file" and is_first))

    def _parquet(self, path: bytes) -> Iterator[Piece]:
        groups = _row_groups(path)
        total = sum(rows for rows, _ in groups)
        wanted = self._window.next(total)
        for start, end in self._row_ranges(groups, wanted):
            low, high = max(start, wanted.start), min(end, wanted.stop)
            if low < high:
                yield Piece(path, low, high, is_aligned=True, first_row=self._window.seen + low - self._window.first)
        self._window.seen += total

    def _row_ranges(self, groups: list[tuple[int, int]], wanted: range) -> Iterator[tuple[int, int]]:
        """Ranges of rows of one file: large row groups are cut, small ones are combined."""
        if self._rows is not None:
            for start in wanted[:: self._rows]:
                yield start, start + self._rows
            return
        first, gathered, gathered_bytes = 0, 0, 0
        for rows, size in groups:
            if gathered and gathered_bytes + size > self._bytes:
                yield first, first + gathered
                first, gathered, gathered_bytes = first + gathered, 0, 0
            gathered, gathered_bytes = gathered + rows, gathered_bytes + size
            if gathered_bytes > self._bytes:
                count = min(gathered, -(-gathered_bytes // self._bytes))
                cuts = [first + gathered * number // count for number in range(count + 1)]
                yield from pairwise(cuts)
                first, gathered, gathered_bytes = first + gathered, 0, 0
        if gathered:
            yield first, first + gathered


class RecordCutter:
    """Cuts one file at the beginnings of records, as they are found.

    Args:
        rows: how many in each piece; None: pieces of about `size` bytes.
    """

    def __init__(self, path: bytes, window: RowWindow, *, rows: int | None, size: int) -> None:
        self._path = path
        self._window = window
        self._rows = rows
        self._size = size
        self._counted = 0
        self._begin: int | None = None
        """Of the piece that is being filled."""
        self._row = 0
        """Index of its first row."""
        self._end: int | None = None
        """Where the first row begins that is not wanted any more."""

    @property
    def is_over(self) -> bool:
        """Nothing of what follows in this file is wanted."""
        return self._end is not None or (self._window.is_over and self._begin is None)

    def add(self, starts: Offsets) -> Iterator[Piece]:
        """The pieces whose ends are known, now that records are known to begin here."""
        wanted = self._window.next(len(starts))
        for rank in self._cuts(starts, wanted):
            begin = starts[rank]
            if self._begin is not None:
                yield self._piece(begin)
            self._begin = begin
            self._row = self._window.seen + rank - self._window.first
        if self._begin is not None and self._end is None and wanted.stop < len(starts):
            self._end = starts[wanted.stop]
        self._window.seen += len(starts)

    def _cuts(self, starts: Offsets, wanted: range) -> Iterable[int]:
        """Which of these begin a piece."""
        if self._rows is not None:
            first = -self._counted % self._rows
            self._counted += len(wanted)
            return wanted[first :: self._rows]
        return self._cuts_by_bytes(starts, wanted)

    def _cuts_by_bytes(self, starts: Offsets, wanted: range) -> Iterator[int]:
        """The first one after each multiple of the size."""
        rank = wanted.start
        if self._begin is not None:
            rank = max(rank, starts.before((self._begin // self._size + 1) * self._size))
        while rank < wanted.stop:
            yield rank
            rank = starts.before((starts[rank] // self._size + 1) * self._size)

    def _piece(self, end: int) -> Piece:
        return Piece(self._path, self._begin or 0, end, is_aligned=True, first_row=self._row)

    def finish(self, end: int) -> Iterator[Piece]:
        """The last piece of the file, which ends at `end`."""
        if self._begin is not None:
            yield self._piece(end if self._end is None else self._end)


def _row_groups(path: bytes) -> list[tuple[int, int]]:
    """Rows and bytes of each row group of a Parquet file, from its footer.

    Raises:
        InvalidInput: there is no pyarrow, or this is not a Parquet file.
        OSError: the file can't be read.
    """
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        message = "Parquet files are cut with pyarrow, which is not installed where the master runs"
        raise InvalidInput(message) from error
    name = os.fsdecode(path)
    try:
        metadata: Any = pq.read_metadata(name)
    except OSError:
        raise
    except Exception as error:  # pyarrow's own types, all of them ValueError in newer versions only
        raise InvalidInput(f"{name}: not a Parquet file: {error}") from error
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return [(group.num_rows, _compressed(group)) for group in groups if group.num_rows]


def _compressed(group: Any) -> int:
    return sum(int(group.column(number).total_compressed_size) for number in range(group.num_columns))
