"""Columns as tables have them in pandas, as arrays of Arrow with the same values.

Arrow has no column of several types. Where a table has one (`on_mismatch: keep`), each value becomes a text, as
`convert_column_types` with `string` writes it; lists and objects become JSON.
"""

import json
from typing import Any

from parallelrun_worker.tables.arrow_columns import converted
from parallelrun_worker.tables.arrow_types import NON_TEXT_KINDS
from parallelrun_worker.tables.arrow_values import is_faithful
from parallelrun_worker.tables.inference import Kind
from parallelrun_worker.tables.steps import text_of
from parallelrun_worker.tables.values import ColumnValues

ANY: Kind = {"kind": "any"}
_PLAIN = ("string", "boolean", "floating", "bytes", "decimal", "date", "datetime", "time")
"""What `pandas.api.types.infer_dtype` calls values which are all of one type that Arrow has."""


def arrow_of(frame: Any, kinds: dict[str, Kind]) -> Any:
    """A DataFrame as an Arrow table.

    Args:
        kinds: those of its columns, by name, where they are known: of a column without values, and of whole numbers
            beside nulls, pandas' own type doesn't tell.

    Raises:
        ValueError: it has a text that is not Unicode.
    """
    import pyarrow as pa

    names = [str(name) for name in frame.columns]
    arrays = [array_of(frame.iloc[:, place], kinds.get(name, ANY), name) for place, name in enumerate(names)]
    return pa.table(arrays, names=names)


def array_of(column: Any, kind: Kind = ANY, name: str = "") -> Any:
    """A column, which is an array of NumPy or a Series, as an array of Arrow.

    Raises:
        ValueError: it has a text that is not Unicode.
    """
    import pyarrow as pa

    try:
        array = _of_objects(column) if column.dtype == object else pa.array(column, from_pandas=True)
    except UnicodeEncodeError as error:
        problem = "a text has half of a surrogate pair, which Arrow can't hold: leave out mini_batch_format"
        raise ValueError(f"column {name!r}: {problem}" if name else problem) from error
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if str(array.type) in ("large_string", "string_view"):  # pyarrow 15 has no function for the latter
        array = array.cast(pa.string())
    return _of_kind(array, kind)


def widened(rows: Any, row: Any, kinds: dict[str, Kind]) -> Any:
    """Rows (an Arrow table) with more columns, each of one value.

    Args:
        row: a DataFrame of one row that names all columns, in order, and has the values of those that are new.
        kinds: those of new columns, by name.
    """
    import pyarrow as pa

    columns = {
        name: rows.column(name)
        if name in rows.column_names
        else pa.repeat(array_of(row[name], kinds.get(name, {"kind": "string"}), name)[0], len(rows))
        for name in row.columns
    }
    return pa.table(columns)


def _of_kind(array: Any, kind: Kind) -> Any:
    import pyarrow as pa

    if kind["kind"] == "int" and pa.types.is_floating(array.type):
        try:
            return array.cast(pa.int64())
        except pa.ArrowInvalid:  # a number that whole numbers don't have
            return array
    if pa.types.is_null(array.type):
        types = {"string": pa.string(), "bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(),
                 "datetime": pa.timestamp("ns")}  # fmt: skip
        return array.cast(types.get(kind["kind"], pa.null()))
    return array


def _of_objects(column: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    value_kind = pd.api.types.infer_dtype(column, skipna=True)
    try:
        if value_kind in _PLAIN or value_kind == "empty":
            array = pa.array(column, from_pandas=True)
            if value_kind not in ("date", "datetime") or is_faithful(list(column), array.type):  # times are dates, too
                return array
        if value_kind == "integer":
            return _of_integers(column)
        if len({type(value) for value in column if value is not None}) == 1:
            array = pa.array(list(column))
            if is_faithful(list(column), array.type):
                return array
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        pass
    return pa.array([_text(value) for value in column], pa.string())


def _of_integers(column: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.array(column, pa.int64(), from_pandas=True)
    except (OverflowError, pa.ArrowInvalid):
        return pa.array(column, pa.uint64(), from_pandas=True)


def _text(value: Any) -> str | None:
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return text_of(value)


def kept_in_arrow(column: Any, kind: Kind, values: ColumnValues | None) -> Any:
    """A column that Arrow's parser has made, without a way through Python where it has its type.

    Raises:
        BadValue: a value doesn't fit, and the table refuses it.
    """
    import pyarrow as pa

    if pa.types.is_string(column.type) and kind["kind"] not in NON_TEXT_KINDS:
        return column
    if pa.types.is_int64(column.type) or (pa.types.is_boolean(column.type) and "odd" not in kind):
        return column
    if pa.types.is_floating(column.type):
        return with_null_for_nan(column)
    return array_of(converted(column, kind, values), kind)


def with_null_for_nan(column: Any) -> Any:
    """Floats in which NaN is null, as both are for pandas."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_nan = pc.is_nan(column)
    return pc.if_else(is_nan, pa.scalar(None, column.type), column) if pc.any(is_nan).as_py() else column
