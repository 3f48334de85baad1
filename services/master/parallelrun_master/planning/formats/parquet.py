"""Parquet files: cut by their footers, at row groups, and within large ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from parallelrun_core.errors import InvalidInput, UnsafePath
from parallelrun_core.message import Piece
from parallelrun_core.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_master.planning.table_format import TableFormat


class Format(TableFormat):
    """A piece is a range of rows."""

    def pieces(self, path: bytes) -> Iterator[Piece | None]:
        """See the base."""
        groups = _row_groups(path, self.rule)
        total = sum(rows for rows, _ in groups)
        wanted = self.window.next(total)
        for start, end in self._ranges(groups, wanted):
            low, high = max(start, wanted.start), min(end, wanted.stop)
            if low < high:
                yield Piece(path, low, high, is_aligned=True, first_row=self.window.seen + low - self.window.first)
        self.window.seen += total

    def _ranges(self, groups: list[tuple[int, int]], wanted: range) -> Iterator[tuple[int, int]]:
        """Ranges of rows of one file: large row groups are cut, small ones are combined."""
        if self.size_rows is not None:
            for start in wanted[:: self.size_rows]:
                yield start, start + self.size_rows
            return
        first, gathered, gathered_bytes = 0, 0, 0
        for rows, size in groups:
            if gathered and gathered_bytes + size > self.size_bytes:
                yield first, first + gathered
                first, gathered, gathered_bytes = first + gathered, 0, 0
            gathered, gathered_bytes = gathered + rows, gathered_bytes + size
            if gathered_bytes > self.size_bytes:
                count = min(gathered, -(-gathered_bytes // self.size_bytes))
                cuts = [first + gathered * number // count for number in range(count + 1)]
                yield from pairwise(cuts)
                first, gathered, gathered_bytes = first + gathered, 0, 0
        if gathered:
            yield first, first + gathered


def _row_groups(path: bytes, rule: PathRule | None) -> list[tuple[int, int]]:
    """Rows and bytes of each row group of a Parquet file, from its footer.

    Raises:
        InvalidInput: there is no pyarrow, this is not a Parquet file, or the rule refuses it.
        OSError: the file can't be read.
    """
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        message = "Parquet files are cut with pyarrow, which is not installed where the master runs"
        raise InvalidInput(message) from error
    name = os.fsdecode(path)
    try:
        with storage_of(path).open(path, rule) as file:
            metadata: Any = pq.read_metadata(file)
    except (OSError, UnsafePath):
        raise
    except Exception as error:  # pyarrow's own types, all of them ValueError in newer versions only
        raise InvalidInput(f"{name}: not a Parquet file: {error}") from error
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return [(group.num_rows, _compressed(group)) for group in groups if group.num_rows]


def _compressed(group: Any) -> int:
    return sum(int(group.column(number).total_compressed_size) for number in range(group.num_columns))
