"""JSON lines: an object on each line."""

from __future__ import annotations

from typing import Final

from parallelrun_core.mltable.options import IGNORED, encoding, one_of, options_of, size_in_bytes
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

DICTS: Final = "dicts"


class ReadJsonLines(TypedText, tag="read_json_lines"):
    """Any row may have columns that no other has."""

    suffixes = (".jsonl", ".ndjson")
    has_fixed_columns = False

    invalid_lines: str
    """`error` or `drop`."""
    encoding: str
    unpacked_limit: int = UNPACKED_LIMIT
    rows_as: str = "dataframe"
    """The form in which run() gets rows: `dataframe`, or `dicts`, a list of the objects as the lines have them."""

    @property
    def libraries_needed(self) -> tuple[str, ...]:
        return () if self.has_dict_rows else self.libraries

    @property
    def has_dict_rows(self) -> bool:
        return self.rows_as == DICTS

    @property
    def text(self) -> Text:
        return Text(self.encoding, unpacked_limit=self.unpacked_limit)

    @classmethod
    def parse(cls, options: object, at: At) -> ReadJsonLines:
        checked = options_of(
            options,
            at,
            ("invalid_lines", "encoding", "unpacked_limit", "rows_as", *OF_FILES, *TYPED_TEXT, *IGNORED),
        )
        if checked.get("rows_as") == DICTS and checked.get("include_path_column"):
            at.below("include_path_column").wrong("a dict has the values of its line alone", "leave out rows_as: dicts")
        return cls(
            invalid_lines=one_of(checked, "invalid_lines", ("error", "drop"), "error", at),
            encoding=encoding(checked, at),
            unpacked_limit=size_in_bytes(checked, "unpacked_limit", UNPACKED_LIMIT, at),
            rows_as=one_of(checked, "rows_as", ("dataframe", DICTS), "dataframe", at),
            **of_files(checked, at),
            **typed_text(checked, at),
        )
