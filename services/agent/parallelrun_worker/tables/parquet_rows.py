"""Ranges of rows of a Parquet file to a DataFrame, with no more in memory than the range and one batch."""

from collections.abc import Callable, Collection, Iterator
from contextlib import nullcontext
from typing import Any

from parallelrun_worker.tables.arrow_columns import FEW, texts_of_arrow
from parallelrun_worker.tables.assembling import frame_of
from parallelrun_worker.tables.conversion import as_objects
from parallelrun_worker.tables.parquet_footer import check_footer
from parallelrun_worker.tables.table_format import Open, Piece, Records
from parallelrun_worker.tables.values import EXACT_IN_FLOAT

_BATCH_ROWS = 1 << 16
_MOST_BYTES_OF_NUMBER = 4
"""A text's number in a dictionary takes fewer bytes, and its share of the dictionary is in them; others take more."""
_MOST_COLUMNS = 1000
_AT_ONCE_BYTES = 256 << 20
"""Nested columns of more than 2 GB can't be read at once."""


def source_of(path: str, opener: Open) -> Any:
    """Return what Arrow reads a file from, in a `with` statement: by itself, unless files are opened in another way."""
    return nullcontext(path) if opener is open else opener(path, "rb")


def read_rows(piece: Piece, columns: list[str] | None, opener: Open = open) -> Any:
    """Rows of a file as an Arrow table; all columns, or these.

    Raises:
        ImportError: pyarrow isn't installed.
        ValueError: it is not a Parquet file.
    """
    import pyarrow.parquet as pq

    path, start, end = piece[:3]
    with source_of(path, opener) as source, pq.ParquetFile(source, page_checksum_verification=True) as file:
        return _table(file, start, end, columns)


def read_for_frame(piece: Piece, columns: list[str] | None, opener: Open = open) -> tuple[Any, frozenset[str]]:
    """Rows as `read_rows` gives them, but columns of texts that repeat are dictionaries; with the names of these.

    Nothing is decoded twice then, and each text becomes an object once: a column takes half the time.
    """
    import pyarrow.parquet as pq

    path, start, end = piece[:3]
    with source_of(path, opener) as source, pq.ParquetFile(source, page_checksum_verification=True) as file:
        repeating = _repeating(file, start, end)
        if not repeating:
            return _table(file, start, end, columns), frozenset()
        with pq.ParquetFile(
            source, metadata=file.metadata, read_dictionary=repeating, page_checksum_verification=True
        ) as packed:
            return _table(packed, start, end, columns), frozenset(repeating)


def _table(file: Any, start: int, end: int, columns: list[str] | None) -> Any:
    import pyarrow as pa

    tables = list(_tables(file, start, end, columns))
    if tables:
        return pa.concat_tables(tables)
    schema = file.schema_arrow
    if columns is not None:
        schema = pa.schema([field for field in schema if field.name in columns])
    return schema.empty_table()


def _repeating(file: Any, start: int, end: int) -> list[str]:
    """The columns of texts whose pages in a range of rows hold little more than numbers of a dictionary."""
    numbers = [group for group, _, _ in _overlaps(file, start, end)]
    groups = [file.metadata.row_group(number) for number in numbers]
    if not groups or groups[0].num_columns > _MOST_COLUMNS:
        return []
    check_footer(file.metadata, numbers)
    texts = {field.name for field in file.schema_arrow if _is_text(field.type)}
    names = [(at, groups[0].column(at).path_in_schema) for at in range(groups[0].num_columns)]
    return [name for at, name in names if name in texts and all(_is_small(group.column(at)) for group in groups)]


def _is_small(chunk: Any) -> bool:
    most_bytes = _MOST_BYTES_OF_NUMBER * chunk.num_values
    return bool(chunk.has_dictionary_page and chunk.num_values >= FEW and chunk.total_uncompressed_size <= most_bytes)


def _write_stream(table: Any) -> bytes:
    """Rows as an Arrow IPC stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def read_streams(data: bytes) -> Any:
    """The rows of consecutive Arrow IPC streams, as one Arrow table."""
    import pyarrow as pa

    tables = []
    with pa.BufferReader(data) as source:
        while source.tell() < len(data):
            tables.append(pa.ipc.open_stream(source).read_all())
    return pa.concat_tables(tables)


def to_frame(table: Any, *, is_exact: bool = False, repeating: Collection[str] = (), text_dtype: Any = None) -> Any:
    """An Arrow table as pandas 2 would have it: texts are objects, and their nulls are None.

    Args:
        text_dtype: another dtype of texts, as a newer pandas would have it.
        is_exact: whole numbers beside nulls that a float may not have exactly are columns `Int64` or `UInt64`.
        repeating: columns of texts that were read as dictionaries.
    """
    names = table.column_names
    texts = [place for place, type_ in enumerate(table.schema.types) if _is_text(type_) or names[place] in repeating]
    frame = (table.drop_columns([names[place] for place in texts]) if texts else table).to_pandas(ignore_metadata=True)
    if texts:  # of which older releases of pyarrow make objects, and newer ones what pandas does
        columns = {name: frame[name] for name in frame.columns}
        columns |= {names[place]: texts_of_arrow(table.column(place), text_dtype) for place in texts}
        frame = frame_of(names, [columns[name] for name in names])
    for place, column in enumerate(table.columns if is_exact else ()):
        if _would_be_rounded(column):
            frame.isetitem(place, nullable(column))
        elif holds(column, _would_be_rounded):
            frame.isetitem(place, own_objects(column))
    for place, dtype in enumerate(frame.dtypes):
        if text_dtype is None and str(dtype) in ("str", "string"):
            frame.isetitem(place, as_objects(frame.iloc[:, place]))
    return frame


def _is_text(type_: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _would_be_rounded(column: Any) -> bool:
    """Return whether a column has nulls, and whole numbers that a float may not have exactly."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not column.null_count or not (pa.types.is_int64(column.type) or pa.types.is_uint64(column.type)):
        return False
    extremes = pc.min_max(column).as_py()
    low, high = extremes["min"], extremes["max"]
    return low is not None and not -EXACT_IN_FLOAT <= low <= high <= EXACT_IN_FLOAT


def holds(column: Any, is_such: Callable[[Any], bool]) -> bool:
    """Return whether a column of lists, objects or maps has a part, at any depth, of which this is true."""
    import pyarrow as pa

    if not pa.types.is_nested(column.type):
        return False
    inner = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(inner, pa.ChunkedArray):  # without rows
        return False
    if isinstance(inner, pa.StructArray):
        parts = inner.flatten()
    elif isinstance(inner, pa.MapArray):
        parts = [inner.keys, inner.items]
    else:
        parts = [inner.flatten()]
    return any(is_such(part) or holds(part, is_such) for part in parts)


def own_objects(column: Any) -> Any:
    """Python's own lists and numbers as a column of pandas."""
    import pandas as pd

    return pd.Series(column.to_pylist(), dtype=object)


def nullable(column: Any) -> Any:
    """Whole numbers and nulls as a column of pandas that can be empty in places."""
    import pandas as pd

    null = column.is_null().to_numpy()
    numbers = column.fill_null(0).to_numpy()
    return pd.Series(pd.arrays.IntegerArray(numbers.copy(), null))


def names_of(path: str, opener: Open = open) -> list[str]:
    """The names of a file's columns."""
    import pyarrow.parquet as pq

    with source_of(path, opener) as source:
        return list(pq.read_schema(source).names)


def _tables(file: Any, start: int, end: int, columns: list[str] | None) -> Iterator[Any]:
    """Yield the rows of a range; whole row groups at once, which takes a tenth less CPU time than batches."""
    for group, low, high in _overlaps(file, start, end):
        about = file.metadata.row_group(group)
        if (low, high) == (0, about.num_rows) and about.total_byte_size <= _AT_ONCE_BYTES:
            yield file.read_row_group(group, columns=columns)
        else:
            yield from _part_of(file, group, low, high, columns)


def _overlaps(file: Any, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield which rows of which row groups are in a range of a file's rows."""
    first = 0
    for group in range(file.metadata.num_row_groups):
        last = first + file.metadata.row_group(group).num_rows
        low, high = max(start, first) - first, (last if end < 0 else min(end, last)) - first
        if low < high:
            yield group, low, high
        first = last


def _part_of(file: Any, group: int, low: int, high: int, columns: list[str] | None) -> Iterator[Any]:
    import pyarrow as pa

    at = 0
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, row_groups=[group], columns=columns):
        begin, stop = max(low - at, 0), min(high - at, batch.num_rows)
        if begin < stop:
            yield pa.Table.from_batches([batch.slice(begin, stop - begin)])
        at += batch.num_rows
        if at >= high:
            break


class ArrowRecords(Records):
    """Rows of an Arrow table, stored as IPC streams.

    Args:
        to_frame: makes such rows a DataFrame.
    """

    def __init__(self, rows: Any, to_frame: Callable[[Any], Any]) -> None:
        self.header = []
        self._rows = rows
        self._to_frame = to_frame

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def frame(self, indices: list[int] | None = None) -> Any:
        return self._to_frame(self._rows if indices is None else self._rows.take(indices))

    def stored(self, indices: list[int], keys: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        order = sorted(range(len(keys)), key=keys.__getitem__)
        rows = self._rows.take([indices[at] for at in order])
        each: list[bytes] = []
        streams: list[bytes] = []
        start = 0
        for end in range(1, len(order) + 1):
            if end == len(order) or keys[order[end]] != keys[order[start]]:
                each.append(keys[order[start]])
                streams.append(_write_stream(rows.slice(start, end - start)))
                start = end
        return each, streams
