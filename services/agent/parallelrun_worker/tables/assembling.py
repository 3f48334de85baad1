"""Assembling of columns to a DataFrame, without a cost for each column where there are very many."""

from collections.abc import Sequence
from typing import Any

MANY = 512
"""Columns from which on they are put into blocks here, and not by pandas one by one."""


def frame_of(names: Sequence[str], columns: Sequence[Any]) -> Any:
    """Columns, which are arrays of NumPy or pandas, or Series, as a DataFrame with an index from 0.

    Args:
        names: all different.
    """
    import pandas as pd

    if len(names) >= MANY and hasattr(pd.api, "internals"):
        return _frame_of_blocks(names, columns)
    series = {
        name: pd.Series(column, dtype=column.dtype, copy=False) for name, column in zip(names, columns, strict=True)
    }
    return pd.DataFrame(series, copy=False)


def _frame_of_blocks(names: Sequence[str], columns: Sequence[Any]) -> Any:
    """Make one block of all columns of a type, as pandas' own readers do."""
    import numpy as np
    import pandas as pd

    places: dict[Any, list[int]] = {}
    blocks: list[tuple[Any, Any]] = []
    rows = len(columns[0])
    for place, column in enumerate(columns):
        if isinstance(column.dtype, np.dtype):
            places.setdefault(column.dtype, []).append(place)
        else:
            blocks.append((column.array if isinstance(column, pd.Series) else column, np.array([place])))
    for dtype, at in places.items():
        block = np.empty((len(at), rows), dtype)
        for number, place in enumerate(at):
            block[number] = columns[place]
        blocks.append((pd.array(block) if dtype.kind == "M" else block, np.array(at)))
    index, labels = pd.RangeIndex(rows), pd.Index(list(names))
    api: Any = pd.api
    return api.internals.create_dataframe_from_blocks(blocks, index=index, columns=labels)
