"""Parquet files: cut by their footers, at row groups, and within large ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise
from threading import get_ident
from typing import Any, Final

from parallelrun_core.errors import InvalidInput, UnsafePath
from parallelrun_core.storage.interface import Replaced
from parallelrun_core.storage.objects.trouble import StoreError
from parallelrun_core.wire.message import Piece, Remote
from parallelrun_master.planning.parquet_extents import compressed, extents_of, row_groups
from parallelrun_master.planning.table_format import DamagedFile, TableCutting
from parallelrun_worker.tables.parquet_footer import check_footer

_ALL_ROWS: Final = 1 << 62
_FIRST_WITHOUT_NUMPY: Final = 18
"""The first release of pyarrow that can be imported where there is no NumPy."""


class ParquetCutting(TableCutting):
    """A piece is a range of rows."""

    counts_rows = True

    def pieces(self, path: bytes) -> Iterator[Piece | None]:
        footer = self._footer(path)
        groups = [(group.num_rows, compressed(group)) for group in row_groups(footer)]
        total = sum(rows for rows, _ in groups)
        row_range = self.window.next(total)
        for start, end in self._ranges(groups, row_range):
            low, high = max(start, row_range.start), min(end, row_range.stop)
            if low < high:
                first = self.window.seen + low - self.window.first
                yield Piece(path, low, high, is_aligned=True, first_row=first, remote=self._remote(footer, low, high))
        self.window.seen += total

    def whole(self, path: bytes) -> Piece:
        if self.version is None:
            return Piece(path)
        return Piece(path, remote=self._remote(self._footer(path), 0, _ALL_ROWS))

    def columns_read(self, names: list[str]) -> list[str]:
        """Return which of a file's columns workers read."""
        return self.plan.columns_read(names)

    def _remote(self, footer: Any, start: int, end: int) -> Remote | None:
        if self.version is None:
            return None
        columns = self.columns_read(list(footer.schema.to_arrow_schema().names))
        return Remote(self.version, extents_of(footer, self.version.size_bytes, start, end, columns))

    def _footer(self, path: bytes) -> Any:
        """The metadata of a Parquet file.

        Raises:
            InvalidInput: there is no pyarrow, this is not a Parquet file, or the rule refuses it.
            OSError: the file can't be read.
        """
        try:
            pq = _pyarrow_parquet()
        except ImportError as error:
            message = "Parquet files are cut with pyarrow, which is not installed where the master runs"
            raise InvalidInput(message) from error
        try:
            with self.opened(path) as file:
                footer = pq.read_metadata(file)
            check_footer(footer)
            return footer
        except UnsafePath:
            raise
        except Exception as error:  # pyarrow's own types, all of them ValueError in newer versions only
            if isinstance(error, OSError) and (error.errno is not None or isinstance(error, Replaced | StoreError)):
                raise
            raise DamagedFile(f"{os.fsdecode(path)}: not a Parquet file: {error}") from error

    def _ranges(self, groups: list[tuple[int, int]], row_range: range) -> Iterator[tuple[int, int]]:
        """Ranges of rows of one file: large row groups are cut, small ones are combined."""
        if self.size_rows is not None:
            for start in row_range[:: self.size_rows]:
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


class _NoNumpy:
    """A finder, to be the first one of `sys.meta_path`, by which this thread finds no NumPy."""

    def __init__(self) -> None:
        self._thread = get_ident()

    def find_spec(self, name: str, *_: object) -> None:
        """Leave other modules, and other threads, to the next finder.

        Raises:
            ModuleNotFoundError: it is NumPy.
        """
        if name == "numpy" and get_ident() == self._thread:
            raise ModuleNotFoundError(name)


def _pyarrow_parquet() -> Any:
    """Import `pyarrow.parquet`: without NumPy, which takes half of that time, and which no footer needs.

    Raises:
        ImportError: it can't be imported.
    """
    if "pyarrow" not in sys.modules and int(version("pyarrow").partition(".")[0]) >= _FIRST_WITHOUT_NUMPY:
        finder = _NoNumpy()
        sys.meta_path.insert(0, finder)
        try:
            with suppress(ImportError):
                import_module("pyarrow.parquet")
        finally:
            sys.meta_path.remove(finder)
    return import_module("pyarrow.parquet")
