"""The steps after the reading, on the rows of one piece of a table (reference §4.2)."""

import datetime
import operator
import re
from collections.abc import Callable
from typing import Any

from parallelrun_worker.tables.conversion import as_objects, convert
from parallelrun_worker.tables.data_warnings import DataWarning
from parallelrun_worker.tables.text_dtype import as_texts, is_text_dtype, with_objects
from parallelrun_worker.tables.values import EXACT_IN_FLOAT, ColumnValues, OddValues, Values

EXTRACT = "extract_columns_from_partition_format"
COUNTING = ("take", "skip")
"""Steps that keep rows by their place."""


def selected(frame: Any, selection: list[str] | dict[str, Any]) -> list[str]:
    """Names of the columns that are meant, in the table's order; names that the table doesn't have are ignored."""
    names = [str(name) for name in frame.columns]
    if isinstance(selection, list):
        return [name for name in names if name in selection]
    pattern = re.compile(selection["pattern"], re.IGNORECASE if selection["ignore_case"] else 0)
    return [name for name in names if bool(pattern.search(name)) != selection["invert"]]


class NamedColumns:
    """A table of which only the names of the columns are known."""

    def __init__(self, columns: list[str]) -> None:
        self.columns = columns


def columns_left(table: Any, step: dict[str, Any]) -> list[str]:
    """Names of the columns that `keep_columns` or `drop_columns` leaves."""
    chosen = selected(table, step["columns"])
    return chosen if step["step"] == "keep_columns" else [name for name in table.columns if name not in chosen]


def columns_read(names: list[str], steps: list[dict[str, Any]]) -> list[str]:
    """Return which columns of a file with these the first steps leave: all, if they leave none."""
    remaining = NamedColumns(names)
    for step in steps:
        if step["step"] not in ("keep_columns", "drop_columns"):
            break
        remaining.columns = columns_left(remaining, step)
    return remaining.columns or names


def check_kept(frame: Any, step: dict[str, Any]) -> None:
    """Check that a step leaves a table any column; one missing name beside others that are there is not an error.

    Raises:
        ValueError: none of the columns that are to be kept is there.
    """
    if step["step"] == "keep_columns" and len(frame.columns) and not selected(frame, step["columns"]):
        patterns = step["columns"] if isinstance(step["columns"], list) else [step["columns"]["pattern"]]
        names = ", ".join(repr(name) for name in patterns)
        raise ValueError(f"keep_columns names {names}; there are {', '.join(map(str, frame.columns))}")


def check_filtered(frame: Any, expression: Any) -> None:
    """Check that a table has all columns that a filter names.

    Raises:
        ValueError: one isn't there.
    """
    if isinstance(expression, list) and expression[0] == "col":
        _check_column(frame, expression[1])
    elif isinstance(expression, list):
        for operand in expression[1:]:
            check_filtered(frame, operand)


def apply_step(  # noqa: PLR0911 - one for each step
    frame: Any, step: dict[str, Any], salt: list[int], values: Values | None = None
) -> Any:
    """The frame after one step.

    Args:
        salt: what distinguishes this piece from others, for random numbers.
        values: gets those that can't be converted; None: they become null in silence, as in earlier releases.
    """
    match step["step"]:
        case "keep_columns":
            return frame[selected(frame, step["columns"])]
        case "drop_columns":
            return frame.drop(columns=selected(frame, step["columns"]))
        case "convert_column_types":
            return _converted(frame, step["conversions"], values)
        case "filter":
            return frame[_truth(frame, step["expression"])]
        case "take_random_sample":
            return frame[_drawn(len(frame), step, salt)]
        case "take":
            return frame.iloc[: step["rows"]]
        case "skip":
            return frame.iloc[step["rows"] :]
        case other:
            raise ValueError(f"the step {other!r} is not known to this worker")


def _converted(frame: Any, conversions: list[dict[str, Any]], values: Values | None) -> Any:
    columns = {name: frame[name] for name in frame.columns}
    for conversion in conversions:
        kind = conversion["type"]
        for name in selected(frame, conversion["columns"]):
            declared = None if values is None else values.of_column(name, {**kind, "declared": True})
            if kind["kind"] != "string" or not is_text_dtype(columns[name].dtype):
                columns[name] = _as_kind(with_objects(columns[name]), kind, declared)
    return type(frame)(columns, index=frame.index, copy=False)


def _as_kind(column: Any, kind: dict[str, Any], values: ColumnValues | None) -> Any:
    if kind["kind"] == "string":
        texts = _texts_of(column)
        return texts if values is None else as_texts(texts, values.text_dtype)
    if kind["kind"] == "datetime":
        if column.dtype.kind == "M":
            return column
        kind = _anchored(kind)
        column = column if kind.get("date_constant") is None else _dated(column, kind["date_constant"])
    elif kind["kind"] in ("int", "float") and column.dtype.kind == "b":
        return column.astype("int64" if kind["kind"] == "int" else "float64")
    if column.dtype.kind != "O" and kind["kind"] in ("bool", "datetime"):
        column = _texts_of(column)
    if values is None or (column.dtype.kind not in "OmM" and (kind["kind"] != "int" or _are_exact(column))):
        return convert(column, kind)
    if kind["kind"] == "int" and column.dtype.kind in "iu":
        return column  # also one that has nulls, and numbers that a float hasn't
    is_number = kind["kind"] in ("int", "float")  # beside nulls, truth values are objects
    each = (int(value) if is_number and isinstance(value, bool) else value for value in as_objects(column))
    texts = [value if isinstance(value, str) else text_of(value) for value in each]
    values.kind = {**values.kind, **kind}
    return values.column(texts).set_axis(column.index)


def _texts_of(column: Any) -> Any:
    """Each value of a column as a text, in a column of objects."""
    import pandas as pd

    return pd.Series([text_of(value) for value in as_objects(column)], index=column.index, dtype=object)


def _are_exact(column: Any) -> bool:
    """Return whether all of a column of floats are numbers that are exact as whole numbers."""
    return bool(column.dtype.kind == "f" and not (column.abs() > EXACT_IN_FLOAT).any())


def warning_of(odd_value: OddValues, file: str) -> DataWarning:
    """The warning that tells of values which `convert_column_types` has made null."""
    event = f"{odd_value.text[:80]!r} can't be converted to the type that convert_column_types names, and became null"
    remedy = "column_type: string keeps such values"
    return DataWarning("conversion", file, odd_value.column, event, remedy, odd_value.times)


def _anchored(kind: dict[str, Any]) -> dict[str, Any]:
    if kind.get("date_constant") is None:
        return kind
    return {**kind, "formats": [f"%Y-%m-%d {directives}" for directives in kind.get("formats") or []]}


def _dated(column: Any, date: str) -> Any:
    return column.astype(object).map(lambda value: f"{date} {value}" if isinstance(value, str) else None)


def text_of(value: Any) -> str | None:
    """A value as the reference writes it: 1.0 is 1, and times are in UTC."""
    if getattr(value, "ndim", 0):
        value = value.tolist()
    if value is None or value != value:  # noqa: PLR0124 - NaN is not equal to itself
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if hasattr(value, "tz_convert") and value.tzinfo is not None:
        value = value.tz_convert(None)
    if hasattr(value, "timestamp"):
        return f"{value.isoformat()}+00:00"
    return str(value)


def _drawn(rows: int, step: dict[str, Any], salt: list[int]) -> Any:
    import numpy as np

    return np.random.default_rng([step["seed"] & 0xFFFFFFFF, *salt]).random(rows) < step["probability"]


def _truth(frame: Any, expression: Any) -> Any:
    """Return where a filter holds; not where that is undefined, as with nulls."""
    import numpy as np

    truth = _value(frame, expression)
    if hasattr(truth, "fillna"):
        return (
            as_objects(truth).map(lambda each: each is True or (isinstance(each, np.bool_) and bool(each))).astype(bool)
        )
    return np.full(len(frame), truth is True)


def _value(frame: Any, expression: Any) -> Any:
    if not isinstance(expression, list):
        return expression
    name, *operands = expression
    if name == "col":
        return _column(frame, operands[0])
    if name == "datetime":
        import pandas as pd

        return pd.Timestamp(operands[0])
    values = [
        _truth(frame, operand) if name in ("and", "or", "not") else _value(frame, operand) for operand in operands
    ]
    return _OPERATIONS[name](*values)


def _column(frame: Any, name: str) -> Any:
    """A column as a filter compares it: times are in UTC and without a zone, days are times, as `datetime(…)` is."""
    import pandas as pd

    _check_column(frame, name)
    column = with_objects(frame[name])
    if getattr(column.dtype, "tz", None) is not None:
        return column.dt.tz_convert(None)
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "date":
        return column.map(lambda day: datetime.datetime(day.year, day.month, day.day), na_action="ignore")  # noqa: DTZ001 - see above
    return column


def _check_column(frame: Any, name: str) -> None:
    if name not in frame.columns:
        hint = "; include_path_column: true, an option of the read step, makes it" if name == "Path" else ""
        raise ValueError(f"the filter names the column {name!r}; there are {', '.join(map(str, frame.columns))}{hint}")


def _all_of(*values: Any) -> Any:
    all_of = values[0]
    for value in values[1:]:
        all_of = all_of & value
    return all_of


def _any_of(*values: Any) -> Any:
    any_of = values[0]
    for value in values[1:]:
        any_of = any_of | value
    return any_of


def _compared(operation: str) -> Any:
    compare = getattr(operator, operation)

    def apply(left_value: Any, right: Any) -> Any:
        try:
            return compare(left_value, right)
        except TypeError:  # a text and a number have no order; others beside them may have
            return _one_by_one(compare, left_value, right)

    return apply


def _calculated(operation: str) -> Any:
    calculate = getattr(operator, operation)

    def apply(left_value: Any, right: Any) -> Any:
        try:
            return calculate(left_value, right)
        except TypeError:
            values = _one_by_one(calculate, left_value, right)
            if not hasattr(values, "notna") or not values.notna().any():
                raise
            return values

    return apply


def _one_by_one(operate: Callable[[Any, Any], Any], *sides: Any) -> Any:
    """The result of an operation on columns that have values of several kinds, or on one and a plain value: null where
    it makes no sense."""
    columns = [as_objects(side) for side in sides if hasattr(side, "iloc")]
    if not columns:
        return None
    values = [as_objects(side).tolist() if hasattr(side, "iloc") else [side] * len(columns[0]) for side in sides]
    return columns[0].__class__(
        [_result(operate, *pair) for pair in zip(*values, strict=True)], index=columns[0].index, dtype=object
    )


def _result(operate: Callable[[Any, Any], Any], left_value: Any, right: Any) -> Any:
    if left_value is None or right is None:
        return None
    try:
        return operate(left_value, right)
    except TypeError:
        return None


def _differ(value: Any, other: Any) -> Any:
    """Return where values differ; a null differs from any value, whatever the type of its column is."""
    differ = value != other
    return differ.fillna(True) if hasattr(differ, "fillna") else differ


_OPERATIONS: dict[str, Any] = {
    "and": _all_of,
    "or": _any_of,
    "not": lambda value: ~value,
    "null": lambda value: value.isna(),
    "==": lambda value, other: value == other,
    "!=": _differ,
    **{name: _compared(function) for name, function in {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}.items()},
    **{name: _calculated(function) for name, function in {"+": "add", "-": "sub", "*": "mul", "/": "truediv"}.items()},
}
