"""Lines of a DataFrame as pandas would write them, made column by column by Arrow.

pandas makes a Python object of each value and writes row by row. Of columns whose texts Arrow can make just as it does,
all lines are made at once, in a fifth of the time.
"""

from __future__ import annotations

import re
from typing import Any, Final

from parallelrun_worker.rows.column_texts import (
    content_of,
    is_worth,
    joined,
    odd_values,
    text_of,
    texts_of_floats,
    values_of,
)

_OF_NUMBERS: Final = frozenset("0123456789+-.aefilnrstuTF")
"""Characters of numbers, `inf`, `True` and `False`: if they separate columns, these would need quotes."""


def lines_of(table: Any, separator: str) -> bytes | None:
    """Return the lines, each with a line feed; None if pandas has to write them."""
    if not is_worth(table) or separator in _OF_NUMBERS:
        return None
    if len(table.columns) < 2:  # of which one that is empty is written in quotes
        return None
    is_dated_once = sum(dtype.kind == "M" for dtype in table.dtypes) == 1
    texts = []
    try:
        for place in range(len(table.columns)):
            column = _texts_of(table.iloc[:, place], separator, is_dated_once=is_dated_once)
            if column is None:
                return None
            texts.append(column)
        return content_of(joined([*texts[:-1], joined([texts[-1], "\n"])], separator))
    except odd_values():
        return None


def _texts_of(column: Any, separator: str, *, is_dated_once: bool) -> Any:
    """The fields of a column as Arrow's texts, nulls where they are empty; None if pandas would write others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = None
    if column.dtype.kind == "M":
        texts = _dates(column, is_dated_once=is_dated_once)
        return None if texts is None else _quoted(texts, separator)
    values = values_of(column)
    if values is None:
        return None
    if pa.types.is_integer(values.type) or pa.types.is_null(values.type):
        texts = values.cast(pa.large_string())
    elif pa.types.is_boolean(values.type):
        texts = pc.if_else(values, text_of("True"), text_of("False"))
    elif values.type in (pa.float64(), pa.float32()):
        texts = texts_of_floats(values)
    elif pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        texts = _quoted(values.cast(pa.large_string()), separator)
    return texts


def _dates(column: Any, *, is_dated_once: bool) -> Any:
    """Dates, or times of one column: of several, pandas looks at all together to choose how many digits they get."""
    import numpy as np
    import pyarrow as pa

    if not isinstance(column.dtype, np.dtype):  # times with a zone; Arrow's, whose texts differ between releases
        return None
    is_null = column.isna()
    if not is_dated_once and not (is_null | (column == column.dt.normalize())).all():
        return None
    return pa.array(column.astype(str).astype(object), pa.large_string(), mask=is_null.to_numpy())


def _quoted(texts: Any, separator: str) -> Any:
    """Texts with quotes around those that have a separator, a quote, or the end of a line."""
    import pyarrow.compute as pc

    needs_quotes = pc.match_substring_regex(texts, rf'["\r\n{re.escape(separator)}]')
    if not pc.any(needs_quotes).as_py():
        return texts
    return pc.if_else(needs_quotes, joined(['"', pc.replace_substring(texts, '"', '""'), '"']), texts)
