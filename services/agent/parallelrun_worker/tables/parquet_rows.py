"""Rows of Parquet files, as Arrow has read them, to a DataFrame."""

from collections.abc import Callable, Collection
from typing import Any

from parallelrun_worker.tables.arrow_columns import texts_of_arrow
from parallelrun_worker.tables.assembling import frame_of
from parallelrun_worker.tables.conversion import as_objects
from parallelrun_worker.tables.table_format import Records
from parallelrun_worker.tables.values import EXACT_IN_FLOAT


def _write_stream(table: Any) -> bytes:
    """Rows as an Arrow IPC stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def read_streams(data: bytes) -> list[Any]:
    """The rows of consecutive Arrow IPC streams, as Arrow tables: one for those of the same columns and types."""
    import pyarrow as pa

    tables: list[list[Any]] = []
    with pa.BufferReader(data) as source:
        while source.tell() < len(data):
            table = pa.ipc.open_stream(source).read_all()
            if tables and tables[-1][0].schema.equals(table.schema):
                tables[-1].append(table)
            else:
                tables.append([table])
    return [pa.concat_tables(each) for each in tables]


def to_frame(table: Any, *, is_exact: bool = False, repeating: Collection[str] = (), text_dtype: Any = None) -> Any:
    """An Arrow table as pandas 2 would have it: texts are objects, and their nulls are None.

    Args:
        text_dtype: another dtype of texts, as a newer pandas would have it.
        is_exact: whole numbers beside nulls that a float may not have exactly are columns `Int64` or `UInt64`.
        repeating: columns of texts that were read as dictionaries.
    """
    names = table.column_names
    texts = [place for place, type_ in enumerate(table.schema.types) if is_text(type_) or names[place] in repeating]
    frame = (table.drop_columns([names[place] for place in texts]) if texts else table).to_pandas(ignore_metadata=True)
    if texts:  # of which older releases of pyarrow make objects, and newer ones what pandas does
        columns = {name: frame[name] for name in frame.columns}
        columns |= {names[place]: texts_of_arrow(table.column(place), text_dtype) for place in texts}
        frame = frame_of(names, [columns[name] for name in names])
    for place, column in enumerate(table.columns if is_exact else ()):
        if _would_be_rounded(column):
            frame.isetitem(place, nullable(column))
        elif holds(column, _would_be_rounded) or _has_fine_times(column.type):
            frame.isetitem(place, own_objects(column))
    for place, dtype in enumerate(frame.dtypes):
        if text_dtype is None and str(dtype) in ("str", "string"):
            frame.isetitem(place, as_objects(frame.iloc[:, place]))
    return frame


def is_text(type_: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _is_nested(type_: Any) -> bool:
    """Return what pyarrow says, which up to release 15 doesn't count lists of one length."""
    import pyarrow as pa

    return bool(pa.types.is_nested(type_) or pa.types.is_fixed_size_list(type_))


def _would_be_rounded(column: Any) -> bool:
    """Return whether a column has nulls, and whole numbers that a float may not have exactly."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not column.null_count or not (pa.types.is_int64(column.type) or pa.types.is_uint64(column.type)):
        return False
    extremes = pc.min_max(column).as_py()
    low, high = extremes["min"], extremes["max"]
    return low is not None and not -EXACT_IN_FLOAT <= low <= high <= EXACT_IN_FLOAT


def _has_fine_times(type_: Any, *, is_in_object: bool = False) -> bool:
    """Return whether objects or maps hold times or durations in nanoseconds, of which pyarrow makes plain numbers."""
    import pyarrow as pa

    if not _is_nested(type_):
        is_time = pa.types.is_timestamp(type_) or pa.types.is_duration(type_)
        return is_in_object and is_time and type_.unit == "ns"
    is_in_object = pa.types.is_struct(type_) or pa.types.is_map(type_)
    parts = [type_.field(number).type for number in range(type_.num_fields)]
    return any(_has_fine_times(part, is_in_object=is_in_object) for part in parts)


def holds(column: Any, is_such: Callable[[Any], bool]) -> bool:
    """Return whether a column of lists, objects or maps has a part, at any depth, of which this is true."""
    import pyarrow as pa

    if not _is_nested(column.type):
        return False
    inner = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(inner, pa.ChunkedArray):  # without rows
        return False
    if isinstance(inner, pa.StructArray):
        parts = inner.flatten()
    elif isinstance(inner, pa.MapArray):
        parts = [inner.keys, inner.items]
    else:
        # A null among lists of one length has values, too: nulls.
        parts = [inner.values if pa.types.is_fixed_size_list(inner.type) else inner.flatten()]
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
