"""Return values of `run()`: what scripts may return, and what it is rendered to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

_NO_TEXTS = (
    "generator", "async_generator", "coroutine", "function", "method", "builtin_function_or_method", "map", "filter",
    "zip", "list_iterator", "tuple_iterator", "module", "memoryview", "DataFrame", "Series",
)  # fmt: skip
"""Types whose values have no text, or one that leaves out most of what is in them."""
_UNKNOWN_TO_ARROW = ("Object", "Int128", "UInt128")
"""Polars' types of columns that it hands over to Arrow as addresses, or not at all."""


class BadReturn(Exception):
    """run() returned something that has no rows."""


class Rendered(NamedTuple):
    """The rows of one mini-batch."""

    data: bytes
    rows: int
    line_breaks: int = 0
    """Line breaks inside rows of text, each of which makes one row look like two."""
    shortened: int = 0
    """Rows of text with an array whose text leaves out most of its values, as in `[0.1 0.2 ... 0.9]`."""


def kind_of(returned: object) -> str:
    """`rows`, `table` or `array`; a Series is a column of values, so its kind is `rows`.

    Raises:
        BadReturn: it is none of these.
    """
    if isinstance(returned, (list, tuple)):
        return "rows"
    origins = _origins(returned)
    if "pandas" in origins and hasattr(returned, "to_csv"):
        return "table" if hasattr(returned, "columns") else "rows"
    if "numpy" in origins and getattr(returned, "ndim", 0) > 0:
        return "array"
    if returned is None:
        raise BadReturn(
            "run() returned NoneType: is a `return` missing? It must return one row for each item that succeeded. "
            "If the script writes its results itself: output_action: summary_only, and return []"
        )
    raise BadReturn(
        f"run() returned {type(returned).__name__}; it must return a list, tuple, numpy array or table of pandas, "
        "pyarrow or Polars with one row for each item that succeeded"
    )


def plain_object(value: Any) -> dict[str, Any] | None:
    """The fields of a dataclass, or of a model of pydantic, by name; None if the value is neither."""
    if hasattr(type(value), "__dataclass_fields__"):
        import dataclasses  # the script has; for others, what that imports takes an eighth of a worker's start

        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "model_dump") and hasattr(type(value), "model_fields"):  # of pydantic
        fields: dict[str, Any] = value.model_dump()
        return fields
    return None


def has_no_text(value: object) -> bool:
    """Return whether the text of a value is but its type and its address, as that of a generator or of a plain
    object, or leaves out rows, as that of a DataFrame.
    """
    kind = type(value)
    return kind.__name__ in _NO_TEXTS or (kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__)


def refuse_without_text(values: Iterable[object]) -> None:
    """Refuse values whose text is but their type and address.

    Raises:
        BadReturn: one is such a value.
    """
    for value in values:
        if value is not None and has_no_text(value):
            raise BadReturn(
                f"run() returned an element of the type {type(value).__qualname__}, which has no text of its own: "
                "return its values, as a dict, a list or a dataclass"
            )


def _origins(value: object) -> set[str]:
    """The packages of its base classes: a GeoDataFrame is a DataFrame."""
    return {parent.__module__.partition(".")[0] for parent in type(value).__mro__}


def unpacked(values: Any) -> Any:
    """`values.tolist()`, but times that it would turn into plain numbers stay NumPy values: those finer than
    microseconds, in months or years, and of years that Python doesn't have.
    """
    dtype: Any = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "") not in ("M", "m", "V") or "pandas" in _origins(values):
        return values.tolist()
    if dtype.kind != "V" and values.ndim == 1:
        plain = values.tolist()
        if int not in set(map(type, plain)):
            return plain
    if values.ndim:
        return [unpacked(value) for value in values]
    if values.dtype.names:
        return tuple(unpacked(values[name]) for name in values.dtype.names)
    plain = values.tolist()
    return values[()] if dtype.kind in "Mm" and isinstance(plain, int) else plain


def check_distinct(names: list[str]) -> None:
    """For formats in which a row has room for one value of each name.

    Raises:
        BadReturn: two columns have the same name.
    """
    if len(set(names)) < len(names):
        raise BadReturn(f"run() returned a table in which two columns have the same name: {', '.join(names)}")


def column_names(table: Any) -> list[str]:
    """The names of a DataFrame's columns as text; the levels of a name are joined."""
    return ["_".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in table.columns]


def as_rows(returned: Any) -> Any:
    """Return a DataFrame for a table of pyarrow or Polars, a list for one of their columns, and all else as it is.

    Whole numbers beside nulls stay whole numbers.
    """
    library = type(returned).__module__.partition(".")[0]
    if library == "polars" and hasattr(returned, "to_arrow"):
        types = getattr(returned, "schema", None) or {"": returned.dtype}
        foreign = [name for name, type_ in types.items() if str(type_) in _UNKNOWN_TO_ARROW]
        if foreign:
            return _frame_with(returned, foreign) if hasattr(returned, "schema") else returned.to_list()
        returned, library = returned.to_arrow(), "pyarrow"
    if library != "pyarrow":
        return returned
    if hasattr(returned, "column_names"):
        return _frame_of(returned)
    return returned.to_pylist() if hasattr(returned, "to_pylist") and hasattr(returned, "type") else returned


def _frame_with(table: Any, foreign: list[str]) -> Any:
    """A table of Polars as a DataFrame, some columns of which come as Python's own objects."""
    import pandas as pd

    names = table.columns
    frame = (
        _frame_of(table.drop(foreign).to_arrow())
        if len(foreign) < len(names)
        else pd.DataFrame(index=range(len(table)))
    )
    for name in foreign:
        frame.insert(names.index(name), name, pd.Series(table[name].to_list(), dtype=object))
    return frame


def _frame_of(table: Any) -> Any:
    import pyarrow as pa

    from parallelrun_worker.tables.parquet_rows import holds, nullable, own_objects, to_frame

    def would_be_floats(column: Any) -> bool:
        return bool(column.null_count) and pa.types.is_integer(column.type)

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    frame = to_frame(table, is_exact=True)
    for place, column in enumerate(table.columns):
        if would_be_floats(column):
            frame.isetitem(place, nullable(column))
        elif holds(column, would_be_floats):
            frame.isetitem(place, own_objects(column))
    return frame
