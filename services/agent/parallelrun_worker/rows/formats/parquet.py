"""Rows as a stream of Arrow's IPC format, for an output file whose name ends in .parquet.

The column types of one mini-batch are whatever its values are; the concatenator finds the types that fit all.
"""

from __future__ import annotations

import datetime
from typing import Any

from parallelrun_worker.rows import RowRenderer
from parallelrun_worker.rows.returned import (
    Rendered,
    check_distinct,
    column_names,
    kind_of,
    plain_object,
    refuse_without_text,
    unpacked,
)
from parallelrun_worker.tables.arrow_values import is_faithful, may_mix_numpy_times
from parallelrun_worker.tables.data_warnings import DataWarning


class ParquetRows(RowRenderer):
    """Renders columns of DataFrames, keys of dicts, fields of dataclasses, places in tuples, or one column `value`."""

    def __init__(self, output: dict[str, Any], *checks: Any) -> None:
        super().__init__(output, *checks)
        try:
            import pyarrow as pa
        except ImportError as error:
            raise ModuleNotFoundError(
                "An output file that ends in .parquet needs pyarrow in the workers' environment."
            ) from error
        self._arrow = pa

    def render(self, returned: Any) -> Rendered:
        """Return a stream.

        Raises:
            BadReturn: what `kind_of` raises; two columns have the same name; or a value has no text of its own.
        """
        pa = self._arrow
        kind = kind_of(returned)
        if not len(returned):
            return Rendered(b"", 0)
        names, columns = _of_table(returned) if kind == "table" else _of_rows(returned, kind)
        check_distinct(names)
        arrays = [self._array(name, column) for name, column in zip(names, columns)]  # noqa: B905 - see jsonl
        table = pa.table(arrays, names=[_text(name) for name in names])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return Rendered(sink.getvalue().to_pybytes(), len(returned))

    def _array(self, name: str, column: Any) -> Any:
        pa = self._arrow
        try:
            array = _exact(pa, column)
        except (ValueError, TypeError, OverflowError, pa.ArrowNotImplementedError):
            # Values of several kinds, or of one that Arrow doesn't know: as text.
            refuse_without_text(column)
            texts = [None if _is_null(value) else _text(value) for value in column]
            array = pa.array(texts, pa.string())
            self._warn_of_texts(name, column, len(array) - array.null_count)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array

    def _warn_of_texts(self, name: str, column: Any, count: int) -> None:
        types = sorted({type(value).__name__ for value in column if not _is_null(value)})
        if self._warnings is None or not count or types == ["str"]:
            return
        event = f"run() returned values that Parquet has no type for ({', '.join(types)}), and their text was written"
        remedy = "return values of one type in a column, or write .jsonl"
        self._warnings.add(DataWarning("returned_text", "", _text(name), event, remedy, count, "value"))

    def header_bytes(self, segment: bytes) -> int | None:
        return None


RENDERER = ParquetRows


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
        return [str(place) for place in range(len(rows[0]))], [list(column) for column in zip(*rows)]  # noqa: B905 - see jsonl
    return ["value"], [rows]


def _exact(pa: Any, column: Any) -> Any:
    """The values as Arrow has them, if these are what Python has.

    Raises:
        ValueError, TypeError, OverflowError, pyarrow.ArrowNotImplementedError: Arrow has no type for all of them.
    """
    values = _objects(column)
    if values is None:
        array = pa.array(column, from_pandas=True)
        if getattr(array.type, "extension_name", "").startswith("pandas."):  # a period, which others read as a number
            raise pa.ArrowTypeError("only pandas knows this type")
        return array
    if any(type_.__name__ == "datetime64" for type_ in set(map(type, values))):
        column = values = _with_dates(values)
    if may_mix_numpy_times(values):
        raise pa.ArrowTypeError("times of NumPy are beside values of other kinds")
    array = pa.array(column, from_pandas=True)
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if is_faithful(values, kind):
        return array
    finer = _in_nanoseconds(pa, kind)
    if finer != kind and is_faithful(values, finer):
        return pa.array(column, finer, from_pandas=True)
    raise pa.ArrowTypeError("Arrow would make other values fit the type of the first")


def _in_nanoseconds(pa: Any, kind: Any) -> Any:
    """A type with its times and durations in nanoseconds, those within lists and objects, too."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns", kind.tz)
    if pa.types.is_duration(kind):
        return pa.duration("ns")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_nanoseconds(pa, field.type)) for field in kind])
    return pa.list_(_in_nanoseconds(pa, kind.value_type)) if pa.types.is_list(kind) else kind


def _objects(column: Any) -> list[object] | None:
    """The Python objects of a column, of a category each once; None: it has a type of NumPy's or Arrow's."""
    if isinstance(column, list):
        return column
    categories = getattr(column.dtype, "categories", column)
    return list(categories) if categories.dtype == object else None


def _with_dates(values: list[Any]) -> list[Any]:
    """NumPy's days as dates, which Arrow doesn't take them for, if all of its times are days; else the values."""
    dates = [value.item() if type(value).__name__ == "datetime64" else value for value in values]
    are_days = all(
        isinstance(date, datetime.date) and value.dtype.str.endswith("[D]")
        for value, date in zip(values, dates)  # noqa: B905 - see jsonl
        if type(value).__name__ == "datetime64" and date is not None
    )
    return dates if are_days and any(date is not None for date in dates) else values


def _is_null(value: object) -> bool:
    if isinstance(value, float) or type(value).__name__ in ("datetime64", "timedelta64", "longdouble"):
        return bool(value != value)  # noqa: PLR0124 - NaN, which is null in columns of one kind, too; NumPy's NaT
    return value is None or type(value).__name__ in ("NaTType", "NAType")  # pandas may not be installed


def _text(value: Any) -> str:
    """Return a value as text; bytes of a file name that is not UTF-8 are escaped."""
    return str(value).encode("utf-8", "backslashreplace").decode()
