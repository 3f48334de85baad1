"""Ranges of rows of Parquet files, as Arrow tables.

Of a row group that a range has all rows of, pyarrow reads all. Of one that is cut, columns are read by those of their
pages that have any of the rows (`parquet_pages.py`). Nested columns can't be: their rows are decoded one after the
other, and the next mini-batch of the same row group goes on where the last one ended.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple

from parallelrun_worker.tables.arrow_columns import FEW
from parallelrun_worker.tables.elsewhere import Elsewhere
from parallelrun_worker.tables.parquet_footer import check_footer
from parallelrun_worker.tables.parquet_pages import RowGroup
from parallelrun_worker.tables.parquet_rows import is_text
from parallelrun_worker.tables.table_format import Open, Piece

_BATCH_ROWS = 1 << 16
_LEAST_BATCH_ROWS = 1 << 10
_BUFFER_BYTES = 1 << 20
_ODD = (OSError, ValueError, LookupError, NotImplementedError, RecursionError)
"""Errors of a file whose pages are odd: by itself, pyarrow may read it, or says better what is wrong."""
_MOST_BYTES_OF_NUMBER = 4
"""A text's number in a dictionary takes fewer bytes, and its share of the dictionary is in them; others take more."""
_MOST_COLUMNS = 1000
_AT_ONCE_BYTES = 256 << 20
"""Nested columns of more than 2 GB can't be read at once."""


def source_of(path: str, opener: Open) -> Any:
    """Return what Arrow reads a file from, in a `with` statement: by itself, unless files are opened in another way."""
    return nullcontext(path) if opener is open else opener(path, "rb")


class _Columns(NamedTuple):
    """The columns that are read, and how."""

    names: Sequence[str] | None = None
    """None: all."""
    repeating: Sequence[str] = ()
    """Columns that become dictionaries."""


class ParquetReader:
    """Reads rows of Parquet files, of a worker's mini-batches one after the other.

    Args:
        opener: opens the files.
    """

    def __init__(self, opener: Open = open) -> None:
        self._open = opener
        self._group: tuple[object, RowGroup] | None = None
        """The row group whose pages were read last, and what tells it from others."""
        self._forward: tuple[object, _Forward] | None = None
        """The same for columns that are decoded row by row."""

    def read(self, piece: Piece, columns: list[str] | None = None) -> Any:
        """Rows of a file as an Arrow table; all columns, or these.

        Raises:
            ImportError: pyarrow isn't installed.
            ValueError: it is not a Parquet file.
        """
        import pyarrow.parquet as pq

        with (
            source_of(piece[0], self._open) as source,
            pq.ParquetFile(source, page_checksum_verification=True) as file,
        ):
            return self._table(file, piece, _Columns(columns))

    def read_for_frame(self, piece: Piece, columns: list[str] | None = None) -> tuple[Any, frozenset[str]]:
        """Rows as `read` gives them, but columns of texts that repeat are dictionaries; with the names of these.

        Nothing is decoded twice then, and each text becomes an object once: a column takes half the time.
        """
        import pyarrow.parquet as pq

        path, start, end = piece[:3]
        with source_of(path, self._open) as source, pq.ParquetFile(source, page_checksum_verification=True) as file:
            repeating = _repeating(file, start, end)
            if not repeating:
                return self._table(file, piece, _Columns(columns)), frozenset()
            with pq.ParquetFile(
                source, metadata=file.metadata, read_dictionary=repeating, page_checksum_verification=True
            ) as packed:
                return self._table(packed, piece, _Columns(columns, repeating)), frozenset(repeating)

    def _table(self, file: Any, piece: Piece, columns: _Columns) -> Any:
        import pyarrow as pa

        tables = list(self._tables(file, piece, columns))
        if tables:
            return pa.concat_tables(tables)
        schema = file.schema_arrow
        if columns.names is not None:
            schema = pa.schema([field for field in schema if field.name in columns.names])
        return schema.empty_table()

    def _tables(self, file: Any, piece: Piece, columns: _Columns) -> Iterator[Any]:
        """Yield the rows of a range; whole row groups at once, which takes a tenth less CPU time than batches."""
        import pyarrow as pa

        path, start, end = piece[:3]
        for number, rows in _overlaps(file, start, end):
            about = file.metadata.row_group(number)
            if len(rows) < about.num_rows:
                yield self._part_of(file, path, number, rows, columns)
            elif about.total_byte_size <= _AT_ONCE_BYTES:
                yield file.read_row_group(number, columns=columns.names)
            else:
                for batch in file.iter_batches(_BATCH_ROWS, row_groups=[number], columns=columns.names):
                    yield pa.Table.from_batches([batch])

    def _part_of(self, file: Any, path: str, number: int, rows: range, columns: _Columns) -> Any:
        import pyarrow as pa

        names = file.schema_arrow.names if columns.names is None else columns.names
        with self._open(path, "rb") as opened:
            key = (*_identity_of(opened, path), number)
            tables = []
            with suppress(*_ODD):
                if self._group is None or self._group[0] != key:
                    self._group = key, RowGroup.of(opened, file, number)
                tables.append(self._group[1].read(opened, rows, names, columns.repeating))
        by_pages = {name for table in tables for name in table.column_names}
        others = [name for name in names if name not in by_pages]
        if others:
            tables.append(self._decoded(key, path, rows, _Columns(others, columns.repeating)))
        fields = {field.name: field for table in tables for field in table.schema}
        found = {name: table.column(name) for table in tables for name in table.column_names}
        schema = pa.schema([fields[name] for name in names], metadata=file.schema_arrow.metadata)
        return pa.Table.from_arrays([found[name] for name in names], schema=schema)

    def _decoded(self, key: tuple[Any, ...], path: str, rows: range, columns: _Columns) -> Any:
        """Columns whose rows are decoded from the first one of the row group on, or from where the last call ended."""
        last, self._forward = self._forward, None  # one that has failed isn't used again
        if last is not None and last[0] == (key, columns) and last[1].first_row <= rows.start:
            forward = last[1]
        else:
            forward = _Forward(self._open, path, key[-1], columns, len(rows))
        table = forward.read(rows)
        if not isinstance(key[0], str):  # what is staged of a file in a store may be gone before the next call
            self._forward = (key, columns), forward
        return table


def _identity_of(file: Any, path: str) -> tuple[Any, ...]:
    """Return what tells a file from others, and from what it was; of one in a store, a job reads only one version."""
    if isinstance(file, Elsewhere):
        return (path, file.size)
    about = os.fstat(file.fileno())
    return (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)


class _Forward:
    """Some columns of a row group, decoded batch by batch as rows are asked for."""

    def __init__(self, opener: Open, path: str, number: int, columns: _Columns, row_count: int) -> None:
        self._batches = _batches(opener, path, number, columns, row_count)
        self._batch: Any = None
        self.first_row = 0
        """Those before it are gone."""

    def read(self, rows: range) -> Any:
        """Return rows of the group as an Arrow table."""
        import pyarrow as pa

        found = []
        while True:
            if self._batch is not None:
                begin, stop = max(rows.start - self.first_row, 0), min(rows.stop - self.first_row, len(self._batch))
                if begin < stop:
                    found.append(self._batch.slice(begin, stop - begin))
                if rows.stop <= self.first_row + len(self._batch):
                    return pa.Table.from_batches(found)
                self.first_row += len(self._batch)
            self._batch = next(self._batches)


def _batches(opener: Open, path: str, number: int, columns: _Columns, row_count: int) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with (
        source_of(path, opener) as source,
        pq.ParquetFile(
            source, read_dictionary=columns.repeating, page_checksum_verification=True, buffer_size=_BUFFER_BYTES
        ) as file,
    ):
        size = min(max(row_count, _LEAST_BATCH_ROWS), _BATCH_ROWS)
        yield from file.iter_batches(size, row_groups=[number], columns=columns.names)
    raise ValueError("a row group has fewer rows than its file says")


def _repeating(file: Any, start: int, end: int) -> list[str]:
    """The columns of texts whose pages in a range of rows hold little more than numbers of a dictionary."""
    numbers = [group for group, _ in _overlaps(file, start, end)]
    groups = [file.metadata.row_group(number) for number in numbers]
    if not groups or groups[0].num_columns > _MOST_COLUMNS:
        return []
    check_footer(file.metadata, numbers)
    texts = {field.name for field in file.schema_arrow if is_text(field.type)}
    names = [(at, groups[0].column(at).path_in_schema) for at in range(groups[0].num_columns)]
    return [name for at, name in names if name in texts and all(_is_small(group.column(at)) for group in groups)]


def _is_small(chunk: Any) -> bool:
    most_bytes = _MOST_BYTES_OF_NUMBER * chunk.num_values
    return bool(chunk.has_dictionary_page and chunk.num_values >= FEW and chunk.total_uncompressed_size <= most_bytes)


def names_of(path: str, opener: Open = open) -> list[str]:
    """The names of a file's columns."""
    import pyarrow.parquet as pq

    with source_of(path, opener) as source:
        return list(pq.read_schema(source).names)


def _overlaps(file: Any, start: int, end: int) -> Iterator[tuple[int, range]]:
    """Yield which rows of which row groups are in a range of a file's rows."""
    first = 0
    for number in range(file.metadata.num_row_groups):
        last = first + file.metadata.row_group(number).num_rows
        rows = range(max(start, first) - first, (last if end < 0 else min(end, last)) - first)
        if rows:
            yield number, rows
        first = last
