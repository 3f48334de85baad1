"""JSON lines: an object on each line."""

from __future__ import annotations

from parallelrun_core.mltable.options import IGNORED, encoding, flag, one_of, options_of
from parallelrun_core.mltable.read_step import ReadStep, Text
from parallelrun_core.problems import At


class Read(ReadStep, tag="read_json_lines"):
    """Any row may have columns that no other has."""

    suffixes = (".jsonl", ".ndjson")
    has_fixed_columns = False

    invalid_lines: str
    """`error` or `drop`."""
    encoding: str

    @property
    def text(self) -> Text:
        """See the base."""
        return Text(self.encoding)

    @classmethod
    def parse(cls, options: object, at: At) -> Read:
        """See the base."""
        given = options_of(options, at, ("invalid_lines", "encoding", "include_path_column", *IGNORED))
        return cls(
            invalid_lines=one_of(given, "invalid_lines", ("error", "drop"), "error", at),
            encoding=encoding(given, at),
            include_path_column=flag(given, "include_path_column", at),
        )
