"""What scripts may return from `run()`, and what becomes of it."""

from __future__ import annotations

from typing import Any, NamedTuple


class BadReturn(Exception):
    """run() returned something that has no rows."""


class Rendered(NamedTuple):
    """The rows of one mini-batch."""

    data: bytes
    rows: int
    line_breaks: int = 0
    """Line breaks inside rows of text, each of which makes one row look like two."""


def kind_of(returned: object) -> str:
    """`rows`, `table` or `array`; a Series is a column of values, so its kind is `rows`.

    Raises:
        BadReturn: it is none of these.
    """
    if isinstance(returned, (list, tuple)):
        return "rows"
    # Of what it descends from, too: a GeoDataFrame is a DataFrame.
    origins = {parent.__module__.partition(".")[0] for parent in type(returned).__mro__}
    if "pandas" in origins and hasattr(returned, "to_csv"):
        return "table" if hasattr(returned, "columns") else "rows"
    if "numpy" in origins and getattr(returned, "ndim", 0) > 0:
        return "array"
    raise BadReturn(
        f"run() returned {type(returned).__name__}; it must return a list, tuple, pandas DataFrame or numpy array "
        "with one row for each item that succeeded"
    )


def column_names(table: Any) -> list[str]:
    """The names of a DataFrame's columns as text; levels of a name are put together."""
    return ["_".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in table.columns]
