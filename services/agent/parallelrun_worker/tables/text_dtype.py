"""The dtype of columns of texts (`string_dtype` of a job).

`object`: Python's own texts, with None for null. `pandas`: what the library itself makes of texts, which is `str` from
pandas 3 on, in Arrow's memory if pyarrow is there, with NaN for null; older releases make objects, and so does this.
A column in which anything but texts and nulls stands, or a text that is not Unicode, is one of objects in any case.
"""

from collections.abc import Iterable
from typing import Any

from parallelrun_worker.tables.conversion import as_objects

_TEXTS = ("string", "empty")
"""What `pandas.api.types.infer_dtype` calls values which are all texts, or null."""


def text_dtype_of(plan: dict[str, Any]) -> Any:
    """Return the dtype of texts in a table for pandas; None: they are objects.

    Args:
        plan: its record in `inputs.json`.
    """
    if plan.get("string_dtype", "object") == "object" or plan.get("mini_batch_format", "pandas") != "pandas":
        return None
    import pandas as pd

    dtype = pd.Series([""]).dtype
    return None if dtype == "object" else dtype


def as_texts(column: Any, dtype: Any) -> Any:
    """A column of objects as one of this dtype, if that holds all of its values; else, and for None, as it is."""
    import pandas as pd

    if dtype is None or column.dtype != object or pd.api.types.infer_dtype(column, skipna=True) not in _TEXTS:
        return column
    try:
        return column.astype(dtype)
    except UnicodeEncodeError:  # half of a surrogate pair
        return column


def put_text_dtype(frame: Any, names: Iterable[str], dtype: Any) -> None:
    """Give columns of a DataFrame this dtype, where they are texts; those with other names stay what they are."""
    if dtype is None:
        return
    is_named = set(names)
    for place, (name, column_dtype) in enumerate(frame.dtypes.items()):
        if column_dtype == "object" and name in is_named:
            frame.isetitem(place, as_texts(frame.iloc[:, place], dtype))


def with_objects(column: Any) -> Any:
    """A column of texts as one of objects, for who looks at its values one by one; any other as it is."""
    return as_objects(column) if is_text_dtype(column.dtype) else column


def is_text_dtype(dtype: Any) -> bool:
    import pandas as pd

    return isinstance(dtype, pd.StringDtype)
