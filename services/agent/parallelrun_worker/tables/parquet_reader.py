"""Ranges of rows of Parquet files, as Arrow tables.

Of a row group that a range has all rows of, pyarrow reads all. Of one that is cut, columns are read by those of their
pages that have any of the rows (`parquet_pages.py`). Nested columns can't be: their rows are decoded one after the
other, and the next mini-batch of the same row group goes on where the last one ended. A small row group is read once
for all of a worker's mini-batches that follow each other: a column costs at least its dictionary.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from parallelrun_worker.tables.arrow_columns import FEW
from parallelrun_worker.tables.elsewhere import Elsewhere
from parallelrun_worker.tables.parquet_footer import check_footer
from parallelrun_worker.tables.parquet_pages import RowGroup
from parallelrun_worker.tables.parquet_rows import is_text
from parallelrun_worker.tables.table_format import Open, Piece

_BATCH_ROWS = 1 << 16
_LEAST_BATCH_ROWS = 1 << 6
_BUFFER_BYTES = 1 << 20
_SMALL_BYTES = 16 << 20
_ODD = (OSError, ValueError, LookupError, TypeError, AttributeError, NotImplementedError, RecursionError)
"""Errors of a file whose pages are odd: by itself, pyarrow may read it, or says better what is wrong."""
_MOST_BYTES_OF_NUMBER = 4
"""A text's number in a dictionary takes fewer bytes, and its share of the dictionary is in them; others take more."""
_MOST_COLUMNS = 1000
_AT_ONCE_BYTES = 256 << 20
"""Nested columns of more than 2 GB can't be read at once."""


class _Columns(NamedTuple):
    """The columns that are read, and how."""

    names: Sequence[str] | None = None
    """None: all."""
    repeating: Sequence[str] = ()
    """Columns that become dictionaries."""


class _File(NamedTuple):
    """A file that is open."""

    path: str
    source: Any
    identity: tuple[Any, ...]
    """Device, inode, size and time of change; of a file in a store, of which a job reads one version, path and size."""
    metadata: Any
    """Its `pyarrow.parquet.FileMetaData`."""

    def reader(self, repeating: Sequence[str] = (), **options: Any) -> Any:
        """Return a `pyarrow.parquet.ParquetFile`, to be used in a `with` statement."""
        import pyarrow.parquet as pq

        return pq.ParquetFile(
            self.source, metadata=self.metadata, read_dictionary=repeating, page_checksum_verification=True, **options
        )


class ParquetReader:
    """Reads rows of Parquet files, of a worker's mini-batches one after the other.

    Args:
        opener: opens the files.
    """

    def __init__(self, opener: Open = open) -> None:
        self._open = opener
        self._footer: tuple[object, Any] | None = None
        """The footer that was read last, which takes as long as some mini-batches, and the identity of its file."""
        self._group: tuple[object, RowGroup] | None = None
        """The row group whose pages were read last, and what tells it from others."""
        self._forward: tuple[object, _Forward] | None = None
        """The same for columns that are decoded row by row."""
        self._small: tuple[object, Any] | None = None
        """A small row group that was read last, as a table."""

    def names(self, path: str) -> list[str]:
        """Return the names of a file's columns.

        Raises:
            ImportError: pyarrow isn't installed.
            ValueError: it is not a Parquet file.
        """
        with self._file(path) as file:
            return list(file.metadata.schema.to_arrow_schema().names)

    def read(self, piece: Piece, columns: list[str] | None = None) -> Any:
        """Rows of a file as an Arrow table; all columns, or these. Raises as `names` does."""
        with self._file(piece[0]) as file, file.reader() as reader:
            return self._table(file, reader, piece, _Columns(columns))

    def read_for_frame(self, piece: Piece, columns: list[str] | None = None) -> tuple[Any, frozenset[str]]:
        """Rows as `read` gives them, but columns of texts that repeat are dictionaries; with the names of these.

        Nothing is decoded twice then, and each text becomes an object once: a column takes half the time.
        """
        with self._file(piece[0]) as file:
            repeating = _repeating(file.metadata, piece)
            with file.reader(repeating) as reader:
                return self._table(file, reader, piece, _Columns(columns, repeating)), frozenset(repeating)

    @contextmanager
    def _file(self, path: str) -> Iterator[_File]:
        import pyarrow.parquet as pq

        with self._open(path, "rb") as source:
            identity = _identity_of(source, path)
            if self._footer is None or self._footer[0] != identity:
                self._footer = identity, pq.read_metadata(source)
            yield _File(path, source, identity, self._footer[1])

    def _table(self, file: _File, reader: Any, piece: Piece, columns: _Columns) -> Any:
        import pyarrow as pa

        tables = list(self._tables(file, reader, piece, columns))
        if tables:
            return pa.concat_tables(tables)
        schema = reader.schema_arrow
        if columns.names is not None:
            schema = pa.schema([field for field in schema if field.name in columns.names])
        return schema.empty_table()

    def _tables(self, file: _File, reader: Any, piece: Piece, columns: _Columns) -> Iterator[Any]:
        import pyarrow as pa

        for number, rows in _overlaps(file.metadata, piece):
            about = file.metadata.row_group(number)
            if len(rows) < about.num_rows:
                yield self._some_of(file, reader, number, rows, columns)
            elif about.total_byte_size <= _AT_ONCE_BYTES:  # which takes a tenth less CPU time than batches
                yield reader.read_row_group(number, columns=columns.names)
            else:
                for batch in reader.iter_batches(_BATCH_ROWS, row_groups=[number], columns=columns.names):
                    yield pa.Table.from_batches([batch])

    def _some_of(self, file: _File, reader: Any, number: int, rows: range, columns: _Columns) -> Any:
        """Rows of a row group that is cut."""
        if file.metadata.row_group(number).total_byte_size <= _SMALL_BYTES:
            key = (file.identity, number, columns)
            with suppress(*_ODD):  # a damaged page is only for those whose rows it has
                if self._small is None or self._small[0] != key:
                    self._small = key, reader.read_row_group(number, columns=columns.names)
                return self._small[1].slice(rows.start, len(rows))
        return self._part_of(file, reader, number, rows, columns)

    def _part_of(self, file: _File, reader: Any, number: int, rows: range, columns: _Columns) -> Any:
        import pyarrow as pa

        whole_schema = reader.schema_arrow
        names = whole_schema.names if columns.names is None else columns.names
        tables = []
        with suppress(*_ODD):
            key = (file.identity, number, columns.repeating)  # of which the reader's schema has dictionaries
            if self._group is None or self._group[0] != key:
                self._group = key, RowGroup.of(file.source, reader, number)
            tables.append(self._group[1].read(file.source, rows, names, columns.repeating))
        by_pages = {name for table in tables for name in table.column_names}
        others = [name for name in names if name not in by_pages]
        if others:
            tables.append(self._decoded(file, number, rows, _Columns(others, columns.repeating)))
        fields = {field.name: field for table in tables for field in table.schema}
        found = {name: table.column(name) for table in tables for name in table.column_names}
        schema = pa.schema([fields[name] for name in names], metadata=whole_schema.metadata)
        return pa.Table.from_arrays([found[name] for name in names], schema=schema)

    def _decoded(self, file: _File, number: int, rows: range, columns: _Columns) -> Any:
        """Columns whose rows are decoded from the first one of the row group on, or from where the last call ended."""
        last, self._forward = self._forward, None  # one that has failed isn't used again
        key = (file.identity, number, columns)
        if last is not None and last[0] == key and last[1].first_row <= rows.start:
            forward = last[1]
        else:
            forward = _Forward(_batches(self._open, file, number, columns, len(rows)))
        table = forward.read(rows)
        if not isinstance(file.source, Elsewhere):  # of which parts may be gone before the next call
            self._forward = key, forward
        return table


def _identity_of(source: Any, path: str) -> tuple[Any, ...]:
    if isinstance(source, Elsewhere):
        return (path, source.size)
    about = os.fstat(source.fileno())
    return (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)


class _Forward:
    """Some columns of a row group, decoded batch by batch as rows are asked for.

    Args:
        batches: its rows, from the first one on.
    """

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
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


def _batches(opener: Open, file: _File, number: int, columns: _Columns, row_count: int) -> Iterator[Any]:
    """Yield the rows of a row group, of a file that stays open meanwhile."""
    size = min(max(row_count, _LEAST_BATCH_ROWS), _BATCH_ROWS)
    with opener(file.path, "rb") as source:
        if _identity_of(source, file.path) != file.identity:
            raise ValueError("it was replaced while it was read")
        with file._replace(source=source).reader(columns.repeating, buffer_size=_BUFFER_BYTES) as reader:
            yield from reader.iter_batches(size, row_groups=[number], columns=columns.names)
    raise ValueError("a row group has fewer rows than its file says")


def _repeating(metadata: Any, piece: Piece) -> list[str]:
    """The columns of texts whose pages in a range of rows hold little more than numbers of a dictionary."""
    numbers = [number for number, _ in _overlaps(metadata, piece)]
    groups = [metadata.row_group(number) for number in numbers]
    if not groups or groups[0].num_columns > _MOST_COLUMNS:
        return []
    check_footer(metadata, numbers)
    texts = {field.name for field in metadata.schema.to_arrow_schema() if is_text(field.type)}
    names = [(at, groups[0].column(at).path_in_schema) for at in range(groups[0].num_columns)]
    return [name for at, name in names if name in texts and all(_is_small(group.column(at)) for group in groups)]


def _is_small(chunk: Any) -> bool:
    most_bytes = _MOST_BYTES_OF_NUMBER * chunk.num_values
    return bool(chunk.has_dictionary_page and chunk.num_values >= FEW and chunk.total_uncompressed_size <= most_bytes)


def _overlaps(metadata: Any, piece: Piece) -> Iterator[tuple[int, range]]:
    """Yield which rows of which row groups are in a range of a file's rows."""
    _, start, end = piece[:3]
    first = 0
    for number in range(metadata.num_row_groups):
        last = first + metadata.row_group(number).num_rows
        rows = range(max(start, first) - first, (last if end < 0 else min(end, last)) - first)
        if rows:
            yield number, rows
        first = last
