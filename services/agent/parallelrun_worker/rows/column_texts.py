"""Texts of a DataFrame's columns, made by Arrow all at once: what lines of text and of JSON are put together from."""

from __future__ import annotations

import sys
from typing import Any, Final

_FEW_ROWS: Final = 200
"""Below, pandas is as quick."""
_SMALLEST: Final = 1e-4
_LARGEST: Final = 1e10
"""Both write numbers between these without an exponent, and choose the same digits for all."""


def is_worth(table: Any) -> bool:
    """Return whether Arrow is there, and quicker than pandas."""
    return len(table) >= _FEW_ROWS and "pyarrow" in sys.modules


def odd_values() -> tuple[type[Exception], ...]:
    """Return the errors of values that Arrow doesn't have, such as a text with half a character."""
    import pyarrow as pa

    return (pa.ArrowException, UnicodeError, TypeError, ValueError, OverflowError)


def text_of(value: str) -> Any:
    import pyarrow as pa

    return pa.scalar(value, pa.large_string())


def joined(parts: list[Any], separator: str = "", *, null_handling: str = "replace") -> Any:
    """The texts of several columns, row by row.

    Args:
        null_handling: what pyarrow's `binary_join_element_wise` makes of nulls; if it replaces them, they are empty.
    """
    import pyarrow.compute as pc

    columns = [text_of(part) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*columns, text_of(separator), null_handling=null_handling, null_replacement="")


def content_of(texts: Any) -> bytes:
    """All of these texts, which follow each other in memory."""
    _, offsets, data = texts.buffers()
    first, last = memoryview(offsets).cast("q")[texts.offset], memoryview(offsets).cast("q")[texts.offset + len(texts)]
    return bytes(memoryview(data)[first:last])


def values_of(column: Any) -> Any:
    """The values of a column as an Arrow array; None if it has objects that are no texts.

    Raises:
        pyarrow.ArrowException, UnicodeError, TypeError, ValueError, OverflowError: Arrow has no such values.
    """
    import pyarrow as pa

    if column.dtype == object and not _are_texts(column):
        return None
    values = pa.array(column, from_pandas=True)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _are_texts(column: Any) -> bool:
    import pandas as pd

    return str(pd.api.types.infer_dtype(column, skipna=True)) in ("string", "empty")


def texts_of_floats(values: Any) -> Any:
    """Numbers as Python's `repr` has them: Arrow has no `.0` behind whole ones, and begins with exponents elsewhere."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = pc.abs(values)
    is_odd = pc.fill_null(pc.invert(pc.and_(pc.greater_equal(sizes, _SMALLEST), pc.less(sizes, _LARGEST))), False)
    odd_count = pc.sum(is_odd).as_py() or 0
    if odd_count > len(values) // 4:
        return _by_numpy(values)
    texts = values.cast(pa.large_string())
    ends = pc.if_else(pc.equal(pc.floor(values), values), text_of(".0"), text_of(""))
    texts = joined([texts, ends], null_handling="emit_null")
    return pc.replace_with_mask(texts, is_odd, _by_numpy(values.filter(is_odd))) if odd_count else texts


def _by_numpy(values: Any) -> Any:
    import pyarrow as pa

    texts = values.to_numpy(zero_copy_only=False).astype(str).astype(object)
    return pa.array(texts, pa.large_string(), mask=values.is_null().to_numpy(zero_copy_only=False))
