"""Cuts text files by bytes, without reading them: a piece owns the records that begin in it, and the worker finds where
they do (reference §4.5). Only where quoted fields may hold newlines, or rows are counted, is a file searched for the
beginnings of records.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

from parallelrun_core.mltable.input_plan import InputPlan
from parallelrun_core.spec.fields import MiniBatchSize
from parallelrun_core.storage.interface import read_at, size_of
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.wire.message import Piece, Remote
from parallelrun_master.planning.table_format import DamagedFile, RowWindow, TableCutting
from parallelrun_worker.tables.foreign import HEAD_BYTES, check_kind
from parallelrun_worker.tables.unpacking import LIMIT_BYTES, compression_of, unpack

if TYPE_CHECKING:
    from parallelrun_master.planning.record_bits import Offsets
    from parallelrun_master.planning.text_form import TextForm


class TextCutting(TableCutting):
    """The base of the kinds of tables that are text."""

    disk_factor = 2.5
    is_inferred = True

    def __init__(self, plan: InputPlan, size: MiniBatchSize, window: RowWindow, rule: PathRule | None = None) -> None:
        super().__init__(plan, size, window, rule)
        self.searches = self.size_rows is not None or plan.rows_wanted is not None
        """Whether files are searched for the beginnings of records."""

    @abstractmethod
    def form(self, file: BinaryIO) -> TextForm:
        """Return how the records of the next file are found."""

    def pieces(self, path: bytes) -> Iterator[Piece | None]:
        if self.searches:
            yield from self._records(path)
        else:
            size = (self.version or storage_of(path).version(path)).size_bytes
            for start in range(0, size, self.size_bytes):
                yield Piece(path, start, min(start + self.size_bytes, size))

    def _records(self, path: bytes) -> Iterator[Piece | None]:
        """Pieces that begin and end where a record does."""
        from parallelrun_master.planning.record_scan import record_starts  # NumPy, for which few tables have to wait

        with self.opened(path, is_streamed=True) as opened:
            file = self._unpacked(opened, path)
            remote = self._whole_file() if file is not opened else None
            end = size_of(file)
            seen = self.window.seen
            cutter = RecordCutter(path, self.window, rows=self.size_rows, size=self.size_bytes, remote=remote)
            for starts in record_starts(file, self.form(file)):
                yield from cutter.add(starts)
                yield None
                if cutter.is_over:
                    break
            yield from cutter.finish(end)
            if end and self.window.seen == seen and not cutter.is_over and not _ends_line(file, end):
                yield Piece(path, 0, end, is_aligned=True, rows=0, remote=remote)  # a worker looks at what it may be

    def _unpacked(self, file: BinaryIO, path: bytes) -> BinaryIO:
        """The content of a compressed file; of any other one, the file.

        Raises:
            DamagedFile: it can't be unpacked, or is no text.
        """
        head = read_at(file, 0, HEAD_BYTES)
        compression = compression_of(head, os.fsdecode(path))
        read = self.plan.read
        limit = read.text.unpacked_limit if read is not None and read.text is not None else LIMIT_BYTES
        try:
            if not compression:
                check_kind(head)
                return file
            content = unpack(read_at(file, 0, size_of(file)), compression, limit)
            check_kind(content[:HEAD_BYTES], compression)
            return BytesIO(content)
        except ValueError as error:
            raise DamagedFile(f"{os.fsdecode(path)}: {error}") from error

    def _whole_file(self) -> Remote | None:
        return Remote(self.version, [(0, self.version.size_bytes)]) if self.version is not None else None


def _ends_line(file: BinaryIO, end: int) -> bool:
    last = read_at(file, max(0, end - 4), 4)
    return b"\n" in last or b"\r" in last


class RecordCutter:
    """Cuts one file at the beginnings of records, as they are found.

    Args:
        rows: how many in each piece; None: pieces of about `size` bytes.
        remote: what each piece needs of the file; None: what follows from its range.
    """

    def __init__(
        self, path: bytes, window: RowWindow, *, rows: int | None, size: int, remote: Remote | None = None
    ) -> None:
        self._remote = remote
        self._path = path
        self._window = window
        self._rows = rows
        self._size = size
        self._counted = 0
        self._begin: int | None = None
        """Of the piece that is being filled."""
        self._row = 0
        """Index of its first row."""
        self._end_row = 0
        """Index of the row after the last wanted one so far."""
        self._has_sound_quotes = True
        """Of the blocks in which it is."""
        self._end: int | None = None
        """Where the first row begins that is not wanted any more."""

    @property
    def is_over(self) -> bool:
        """Nothing of what follows in this file is wanted."""
        return self._end is not None or (self._window.is_over and self._begin is None)

    def add(self, starts: Offsets) -> Iterator[Piece]:
        """The pieces whose ends are known, now that records are known to begin here."""
        row_range = self._window.next(len(starts))
        self._has_sound_quotes &= starts.has_sound_quotes
        for rank in self._cuts(starts, row_range):
            begin, row = starts[rank], self._window.seen + rank - self._window.first
            if self._begin is not None:
                yield self._piece(begin, row)
            self._begin, self._has_sound_quotes = begin, starts.has_sound_quotes
            self._row = row
        if self._begin is not None and self._end is None and row_range.stop < len(starts):
            self._end = starts[row_range.stop]
        self._end_row = self._window.seen + row_range.stop - self._window.first
        self._window.seen += len(starts)

    def _cuts(self, starts: Offsets, row_range: range) -> Iterable[int]:
        """Return which of these begin a piece."""
        if self._rows is not None:
            first = -self._counted % self._rows
            self._counted += len(row_range)
            return row_range[first :: self._rows]
        return self._cuts_by_bytes(starts, row_range)

    def _cuts_by_bytes(self, starts: Offsets, row_range: range) -> Iterator[int]:
        """The first one after each multiple of the size."""
        rank = row_range.start
        if self._begin is not None:
            rank = max(rank, starts.before((self._begin // self._size + 1) * self._size))
        while rank < row_range.stop:
            yield rank
            rank = starts.before((starts[rank] // self._size + 1) * self._size)

    def _piece(self, end: int, end_row: int) -> Piece:
        return Piece(
            self._path, self._begin or 0, end, is_aligned=True, first_row=self._row, rows=end_row - self._row,
            remote=self._remote, has_sound_quotes=self._has_sound_quotes,
        )  # fmt: skip

    def finish(self, end: int) -> Iterator[Piece]:
        """The last piece of the file, which ends at `end`."""
        if self._begin is not None:
            yield self._piece(end if self._end is None else self._end, self._end_row)
