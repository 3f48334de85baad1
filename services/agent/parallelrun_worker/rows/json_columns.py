"""Lines of JSON of a DataFrame as Python's encoder would write them row by row, made column by column by Arrow."""

from __future__ import annotations

import json
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

_ESCAPED: Final = r'["\\\x00-\x1f]'
_FIRST_YEAR: Final = 1000
_LAST_YEAR: Final = 9999
"""The years of four digits."""


def lines_of(table: Any, names: list[str]) -> bytes | None:
    """Return an object for each row, each with a line feed; None if they have to be encoded one by one.

    Args:
        names: of the columns, all different.
    """
    if not is_worth(table) or not names:
        return None
    parts: list[Any] = []
    try:
        for place, name in enumerate(names):
            texts = _texts_of(table.iloc[:, place])
            if texts is None:
                return None
            parts += [f"{', ' if place else '{'}{json.dumps(name, ensure_ascii=False)}: ", texts]
        return content_of(joined([*parts, "}\n"]))
    except odd_values():
        return None


def _texts_of(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    values = values_of(column)
    if values is None:
        return None
    texts = None
    if pa.types.is_integer(values.type) or pa.types.is_null(values.type):
        texts = values.cast(pa.large_string())
    elif pa.types.is_boolean(values.type):
        texts = pc.if_else(values, text_of("true"), text_of("false"))
    elif values.type in (pa.float64(), pa.float32()):
        if not pc.any(pc.is_inf(values)).as_py():  # of which a warning tells
            texts = texts_of_floats(values.cast(pa.float64()))
    elif pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        texts = joined(['"', _escaped(values.cast(pa.large_string())), '"'], null_handling="emit_null")
    elif pa.types.is_timestamp(values.type) and values.type.tz is None:
        texts = _times(values)
    return None if texts is None else pc.fill_null(texts, text_of("null"))


def _escaped(texts: Any) -> Any:
    """Texts as they are within quotes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    has_escapes = pc.fill_null(pc.match_substring_regex(texts, _ESCAPED), False)
    if not pc.any(has_escapes).as_py():
        return texts
    escaped = [json.dumps(text, ensure_ascii=False)[1:-1] for text in texts.filter(has_escapes).to_pylist()]
    return pc.replace_with_mask(texts, has_escapes, pa.array(escaped, pa.large_string()))


def _times(values: Any) -> Any:
    """Times as `isoformat` has them; None if one has a fraction of a second, or a year of other than four digits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    years = pc.min_max(pc.year(values)).as_py()
    if years["min"] is not None and not _FIRST_YEAR <= years["min"] <= years["max"] <= _LAST_YEAR:
        return None
    seconds = values.cast(pa.timestamp("s"))  # raises an error for fractions
    days = seconds.cast(pa.date32())
    parts = ['"', days.cast(pa.large_string()), "T", seconds.cast(pa.time32("s")).cast(pa.large_string()), '"']
    return joined(parts, null_handling="emit_null")
