"""Rows as lines of text, with or without a header."""

from __future__ import annotations

import struct
from typing import Any

from parallelrun_worker.rows import RowRenderer
from parallelrun_worker.rows.returned import Rendered, column_names, kind_of
from parallelrun_worker.rows.returned_objects import MARK
from parallelrun_worker.rows.text_columns import lines_of

HEADER_LENGTH = struct.Struct("<I")
"""Before the rows of each segment of a job with a header: how long the header is that follows; 0: there is none."""

_ELLIPSIS = ".."
"""Of three dots among values, or of two where pandas leaves out lines."""


class Lines(RowRenderer):
    """Renders lines; with `header`, those of a segment are preceded by the names of its columns."""

    def __init__(self, output: dict[str, Any], *checks: Any) -> None:
        super().__init__(output, *checks)
        self._separator = output["separator"]
        self._headed = output["header"]
        self._safe = output["safe"]

    def render(self, returned: Any) -> Rendered:
        """Return lines.

        Raises:
            BadReturn: what `kind_of` raises; or what `ReturnedColumns` raises, and its other errors.
        """
        is_table = kind_of(returned) == "table"
        if is_table and self._columns is not None and not self._headed and len(returned):
            returned = self._columns.arranged(returned)
        data, line_breaks, shortened = self._table(returned) if is_table else self._lines(returned)
        if self._headed and data:
            header = self._header(returned) if is_table else b""
            data = HEADER_LENGTH.pack(len(header)) + header + data
        return Rendered(data, len(returned), line_breaks, shortened)

    def header_bytes(self, segment: bytes) -> int:
        return HEADER_LENGTH.size + HEADER_LENGTH.unpack_from(segment)[0] if self._headed and segment else 0

    def _table(self, table: Any) -> tuple[bytes, int, int]:
        written = table
        if self._safe:
            written = table.map(_on_one_line) if hasattr(table, "map") else table.applymap(_on_one_line)
        content = lines_of(written, self._separator)
        if content is not None:
            return content, 0, 0
        text = self._quoted(written.to_csv(sep=self._separator, header=False, index=False))
        shortened = 0
        has_addresses = self._objects is not None and MARK in text
        if _ELLIPSIS in text or has_addresses:
            places = [place for place, dtype in enumerate(table.dtypes) if dtype.kind == "O"]
            rows = [*table.iloc[:, places].itertuples(index=False, name=None)]
            shortened = sum(map(_is_shortened, rows))
            if self._objects is not None and has_addresses:
                self._objects.check(rows)
        return _encode(text), 0, shortened

    def _header(self, table: Any) -> bytes:
        import csv
        import io

        text = io.StringIO()
        csv.writer(text, delimiter=self._separator, lineterminator="\n").writerow(column_names(table))
        return _encode(self._quoted(text.getvalue()))

    def _quoted(self, text: str) -> str:
        """Lines of delimited text with quotes around each field that has a carriage return, which readers take for the
        end of a line; Python's writer leaves it without.
        """
        if "\r" not in text:
            return text
        import re

        fields = re.compile(rf'"[^"]*"|[^"\n{re.escape(self._separator)}]+')
        return fields.sub(lambda found: f'"{found[0]}"' if "\r" in found[0] and found[0][0] != '"' else found[0], text)

    def _lines(self, rows: Any) -> tuple[bytes, int, int]:
        lines = [*rows]
        are_texts = [*map(type, lines)].count(str) == len(lines)  # what most scripts return; nothing of it is left out
        if not are_texts:
            lines = [str(row) for row in lines]
        together = "".join(lines)  # searching all at once is much quicker
        if not are_texts and self._objects is not None and MARK in together:
            self._objects.check(rows)
        line_breaks = together.count("\n") if "\n" in together else 0
        shortened = 0 if are_texts or _ELLIPSIS not in together else sum(map(_is_shortened, rows))
        if self._safe and (line_breaks or "\r" in together):
            lines, line_breaks = [_on_one_line(line) for line in lines], 0
        lines.append("")
        return _encode("\n".join(lines)), line_breaks, shortened


RENDERER = Lines


def _is_shortened(value: Any, depth: int = 3) -> bool:
    """Return whether an array in a row is so long that its text leaves out values: NumPy's, pandas' or PyTorch's."""
    if isinstance(value, (str, bytes)):
        return False
    if isinstance(value, (list, tuple, dict)):
        within = value.values() if isinstance(value, dict) else value
        return depth > 0 and any(_is_shortened(each, depth - 1) for each in within)
    return hasattr(value, "shape") and _ELLIPSIS in str(value)


def _on_one_line(value: Any) -> Any:
    """A value, or its text without line breaks if it has some, as those of long arrays have."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = str(value)
    return text.replace("\r", "\\r").replace("\n", "\\n") if "\n" in text or "\r" in text else value


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")  # file names that are not UTF-8 keep their bytes
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")
