"""Frames one below the other, with every whole number as it is.

pandas finds one type for the columns of all frames, which is a float where one of them has nulls or fractions: a number
beyond 2^53 would be rounded.
"""

from collections.abc import Sequence
from typing import Any

from parallelrun_worker.tables.conversion import as_objects
from parallelrun_worker.tables.text_dtype import is_text_dtype, with_objects
from parallelrun_worker.tables.values import EXACT_IN_FLOAT, int_column


def together(frames: Sequence[Any]) -> Any:
    """The rows of all frames, in order, with an index from 0."""
    import pandas as pd

    if len(frames) == 1:
        return frames[0]
    frames = _with_same_texts(frames)
    names = [name for name in frames[0].columns if any(_is_large(frame, name) for frame in frames)]
    names += [
        name
        for name in dict.fromkeys(name for frame in frames[1:] for name in frame.columns)
        if name not in frames[0].columns and any(_is_large(frame, name) for frame in frames)
    ]
    whole = pd.concat(frames, ignore_index=True)
    for name in names:
        types = {str(frame[name].dtype) if name in frame.columns else "missing" for frame in frames}
        if len(types) > 1:
            values = [value for frame in frames for value in _values_of(frame, name)]
            whole[name] = _column(values)
    return whole


def _with_same_texts(frames: Sequence[Any]) -> Sequence[Any]:
    """The frames with texts as objects in columns that are objects in one of them, which may hold other values."""
    dtypes = [(name, dtype) for frame in frames for name, dtype in frame.dtypes.items()]
    names = {name for name, dtype in dtypes if dtype == "object"}
    names &= {name for name, dtype in dtypes if is_text_dtype(dtype)}
    if not names:
        return frames
    return [
        frame.assign(**{name: with_objects(frame[name]) for name in frame.columns if name in names}) for frame in frames
    ]


def _is_large(frame: Any, name: str) -> bool:
    """Return whether a column has whole numbers that a float may not have exactly."""
    if name not in frame.columns or getattr(frame[name], "ndim", 0) != 1:
        return False
    column = frame[name]
    if column.dtype.kind not in "iu" or not len(column):
        return False
    low, high = column.min(), column.max()
    return bool(low is not None and low == low and (low < -EXACT_IN_FLOAT or high > EXACT_IN_FLOAT))  # noqa: PLR0124 - NA


def _values_of(frame: Any, name: str) -> list[Any]:
    if name not in frame.columns:
        return [None] * len(frame)
    values: list[Any] = as_objects(frame[name]).tolist()
    return values


def _column(values: list[Any]) -> Any:
    """Numbers and nulls; floats that are whole numbers are those of a column that had nulls."""
    import pandas as pd

    whole = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    if all(value is None or type(value) is int for value in whole):
        return int_column(whole)
    return pd.Series(values, dtype=object)
