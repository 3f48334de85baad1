"""Rows as a stream of Arrow's IPC format, for an output file whose name ends in .parquet.

The column types of one mini-batch are whatever its values are; the concatenator finds the types that fit all.
"""

from __future__ import annotations

import datetime
from typing import Any

from parallelrun_worker.rows.returned import (
    Rendered,
    check_distinct,
    column_names,
    kind_of,
    plain_object,
    refuse_without_text,
    unpacked,
)


def check() -> None:
    """Check that pyarrow can be imported, before anything is run.

    Raises:
        ImportError: there is none.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError("An output file that ends in .parquet needs pyarrow in the workers' environment.") from error
    del pa


def render(returned: Any) -> Rendered:
    """The columns of a DataFrame, keys of dicts, fields of dataclasses, places in tuples, or one column `value`.

    Raises:
        BadReturn: what `kind_of` raises; two columns have the same name; or a value has no text of its own.
    """
    import pyarrow as pa

    kind = kind_of(returned)
    if not len(returned):
        return Rendered(b"", 0)
    names, columns = _of_table(returned) if kind == "table" else _of_rows(returned, kind)
    check_distinct(names)
    table = pa.table([_array(pa, column) for column in columns], names=[_text(name) for name in names])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Rendered(sink.getvalue().to_pybytes(), len(returned))


def _of_table(table: Any) -> tuple[list[str], list[Any]]:
    return column_names(table), [table.iloc[:, place] for place in range(len(table.columns))]


def _of_rows(returned: Any, kind: str) -> tuple[list[str], list[Any]]:
    rows = unpacked(returned) if kind == "array" else list(returned)
    if rows and plain_object(rows[0]) is not None:
        rows = [row if (fields := plain_object(row)) is None else fields for row in rows]
    if all(isinstance(row, dict) for row in rows):
        keys = dict.fromkeys(key for row in rows for key in row)
        return [str(key) for key in keys], [[row.get(key) for row in rows] for key in keys]
    if all(isinstance(row, (list, tuple)) for row in rows) and len({len(row) for row in rows}) == 1:
        return [str(place) for place in range(len(rows[0]))], [list(column) for column in zip(*rows)]  # noqa: B905 - see json_lines
    return ["value"], [rows]


def _array(pa: Any, column: Any) -> Any:
    try:
        array = pa.array(column, from_pandas=True)
        if pa.types.is_date(array.type) and any(map(_has_time, column)):
            raise pa.ArrowTypeError("after a date, Arrow cuts off the time of day")
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeEncodeError):
        # Values of several kinds, or of one that Arrow doesn't know: as text.
        refuse_without_text(column)
        array = pa.array([None if _is_null(value) else _text(value) for value in column], pa.string())
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _has_time(value: object) -> bool:
    return isinstance(value, datetime.datetime) and not _is_null(value)


def _is_null(value: object) -> bool:
    return value is None or type(value).__name__ in ("NaTType", "NAType")  # pandas may not be installed


def _text(value: Any) -> str:
    """Return a value as text; bytes of a file name that is not UTF-8 are escaped."""
    return str(value).encode("utf-8", "backslashreplace").decode()
