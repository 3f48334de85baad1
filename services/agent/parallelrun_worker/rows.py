"""From what `run()` returns to its rows in the part file (reference §3.5 and §7)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER_LENGTH = struct.Struct("<I")
"""Before the rows of each segment in the format `headed`: how long the header is that follows; 0: there is none."""


class BadReturn(Exception):
    """run() returned something that has no rows."""


class Rendered(NamedTuple):
    """The rows of one mini-batch."""

    data: bytes
    rows: int
    line_breaks: int = 0
    """Line breaks inside rows of text, each of which makes one row look like two."""


def renderer(output: dict[str, Any]) -> Callable[[object], Rendered]:
    """What renders the rows of a job: `format` (see parallelrun_core/rowformat.py), `separator`, `safe`.

    It raises BadReturn when it is given something else than a list, tuple, DataFrame or array.

    Raises:
        ImportError: the format needs pyarrow, and the environment of the workers has none.
    """
    if output["format"] == "jsonl":
        from parallelrun_worker.rows_json import render

        return render
    if output["format"] == "parquet":
        from parallelrun_worker import rows_arrow

        rows_arrow.check()
        return rows_arrow.render
    return _Text(output["separator"], headed=output["format"] == "headed", safe=output["safe"]).render


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


class _Text:
    """Lines, as the reference has them."""

    def __init__(self, separator: str, *, headed: bool, safe: bool) -> None:
        self._separator = separator
        self._headed = headed
        self._safe = safe

    def render(self, returned: Any) -> Rendered:
        is_table = kind_of(returned) == "table"
        data, line_breaks = self._table(returned) if is_table else self._lines(returned)
        if self._headed and data:
            header = self._header(returned) if is_table else b""
            data = HEADER_LENGTH.pack(len(header)) + header + data
        return Rendered(data, len(returned), line_breaks)

    def _table(self, table: Any) -> tuple[bytes, int]:
        if self._safe:
            table = table.map(_on_one_line) if hasattr(table, "map") else table.applymap(_on_one_line)
        return _encode(table.to_csv(sep=self._separator, header=False, index=False, lineterminator="\n")), 0

    def _header(self, table: Any) -> bytes:
        import csv
        import io

        text = io.StringIO()
        csv.writer(text, delimiter=self._separator, lineterminator="\n").writerow(column_names(table))
        return _encode(text.getvalue())

    def _lines(self, rows: Any) -> tuple[bytes, int]:
        if not len(rows):
            return b"", 0
        lines = map(str, rows)
        text = "\n".join(map(_on_one_line, lines) if self._safe else lines)
        return _encode(text + "\n"), text.count("\n") + 1 - len(rows)


def _on_one_line(value: Any) -> Any:
    if isinstance(value, str) and ("\n" in value or "\r" in value):
        return value.replace("\r", "\\r").replace("\n", "\\n")
    return value


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")  # file names that are no UTF-8 come back as they were
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")
