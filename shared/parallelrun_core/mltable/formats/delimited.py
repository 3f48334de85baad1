"""Delimited text, such as CSV."""

from __future__ import annotations

from typing import Any, Final

from parallelrun_core.mltable.conversions import ColumnType, NamePattern, parse_conversions
from parallelrun_core.mltable.options import IGNORED, encoding, flag, one_of, options_of, size_in_bytes
from parallelrun_core.mltable.read_step import (
    OF_FILES,
    TYPED_TEXT,
    UNPACKED_LIMIT,
    Text,
    TypedText,
    of_files,
    typed_text,
)
from parallelrun_core.problems import At

_HEADERS: Final = ("all_files_same_headers", "all_files_different_headers", "from_first_file", "no_header")
_OPTIONS: Final = (
    "delimiter", "header", "support_multi_line", "empty_as_string", "encoding", "unpacked_limit",
    "columns_by", "skip_lines", "comment",
    "infer_column_types", *OF_FILES, *TYPED_TEXT, *IGNORED,
)  # fmt: skip
_MOST_SAMPLED: Final = 100_000
_MOST_SKIPPED: Final = 10_000


class ReadDelimited(TypedText, tag="read_delimited"):
    """A record is a row; a quoted field may hold newlines with `support_multi_line`."""

    suffixes = (".csv", ".tsv")

    delimiter: str
    header: str
    support_multi_line: bool
    empty_as_string: bool
    encoding: str
    infer: bool
    """Types are inferred from the first rows; otherwise all columns are text."""
    sample_size: int
    overrides: dict[str, ColumnType]
    """Types of some columns, by name."""
    unpacked_limit: int = UNPACKED_LIMIT
    columns_by: str = "position"
    """The columns that values belong to with `all_files_same_headers`: those that the header of their own file names
    (`name`), or those of the first file (`position`)."""
    skip_lines: int = 0
    """So many lines at the beginning of each file are no records, and no header."""
    comment: str = ""
    """The beginning of lines that are no records; empty: none are comments."""

    @property
    def text(self) -> Text:
        return Text(
            self.encoding, self.support_multi_line, True, self.unpacked_limit, self.delimiter,
            self.header != "no_header", self.skip_lines, self.comment,
        )  # fmt: skip

    @classmethod
    def parse(cls, options: object, at: At) -> ReadDelimited:
        checked = options_of(options, at, _OPTIONS)
        delimiter = checked.get("delimiter", ",")
        if not isinstance(delimiter, str) or not 1 <= len(delimiter) <= 2 or set(delimiter) & set('"\r\n\0'):
            at.below("delimiter").wrong(f"must be one or two characters, not {delimiter!r}")
        return cls(
            delimiter=delimiter,
            header=one_of(checked, "header", _HEADERS, _HEADERS[0], at),
            support_multi_line=flag(checked, "support_multi_line", at),
            empty_as_string=flag(checked, "empty_as_string", at),
            encoding=encoding(checked, at),
            columns_by=one_of(checked, "columns_by", ("name", "position"), "position", at),
            skip_lines=_lines_skipped(checked, at),
            comment=_comment(checked, delimiter, at),
            unpacked_limit=size_in_bytes(checked, "unpacked_limit", UNPACKED_LIMIT, at),
            **of_files(checked, at),
            **typed_text(checked, at),
            **_inference(checked.get("infer_column_types", True), at.below("infer_column_types")),
        )


def _lines_skipped(options: dict[str, Any], at: At) -> int:
    count = options.get("skip_lines", 0)
    at = at.below("skip_lines")
    if not at.is_of(count, int, "a number of lines"):
        return 0
    if not 0 <= count <= _MOST_SKIPPED:
        at.wrong(f"must be 0 to {_MOST_SKIPPED:,} lines, not {count}")
    return int(count)


def _comment(options: dict[str, Any], delimiter: object, at: At) -> str:
    mark = options.get("comment", "")
    if not isinstance(mark, str) or len(mark) > 1 or mark in ('"', delimiter) or mark.isspace() or not mark.isascii():
        at.below("comment").wrong(f"must be one character, such as #, and not the delimiter: not {mark!r}")
        return ""
    return mark


def _inference(setting: object, at: At) -> dict[str, Any]:
    if isinstance(setting, bool):
        return {"infer": setting, "sample_size": 200, "overrides": {}}
    options = options_of(setting, at, ("sample_size", "column_type_overrides"))
    size = options.get("sample_size", 100)
    if at.below("sample_size").is_of(size, int, "a number of rows") and not 1 <= size <= _MOST_SAMPLED:
        at.below("sample_size").wrong(f"must be 1 to {_MOST_SAMPLED:,} rows, not {size}")
    overrides: dict[str, ColumnType] = {}
    where = at.below("column_type_overrides")
    for conversion in parse_conversions(options.get("column_type_overrides", []), where):
        if isinstance(conversion.columns, NamePattern):
            where.wrong("an override must name its columns")
            continue
        overrides |= dict.fromkeys(conversion.columns, conversion.type)
    return {"infer": True, "sample_size": size, "overrides": overrides}
