"""The grammar of delimited text, as the reference engine has it (§4.3 and probes of it), in plain Python.

A field that begins with a quote ends at the next single quote; doubled quotes in between stand for one, and what
follows up to the delimiter belongs to it. A quote anywhere else is a character like others, and so is one that is never
closed. An empty field is null, an empty quoted one is an empty text. Records end at a newline, with or without a
carriage return before it; empty lines are not records.
"""

import re
from collections.abc import Iterator

Field = str | None
Record = list[Field]


class NotPlain(Exception):
    """A faster parser would not read this text as the grammar does, or may not."""


class Grammar:
    """How the text of one table is cut into records and fields."""

    def __init__(self, delimiter: str, *, multi_line: bool) -> None:
        self.delimiter = delimiter
        self.multi_line = multi_line
        mark = re.escape(delimiter)
        end = rf"(?={mark}|\n|\r\n|\r?\Z)" if multi_line else rf"(?={mark}|\Z)"
        quoted = rf'"([^"]*(?:""[^"]*)*)"(?!")((?:(?!{mark})[^\n])*?){end}'
        plain = rf"((?:(?!{mark})[^\n])*?){end}"
        self._field = re.compile(f"{quoted}|{plain}", re.DOTALL)

    def records(self, text: str) -> Iterator[Record]:
        """Every record that is not an empty line."""
        return self._across_lines(text) if self.multi_line else self._by_lines(text)

    def _by_lines(self, text: str) -> Iterator[Record]:
        for line in text.split("\n"):
            record = line.removesuffix("\r")
            if record:
                yield self._fields(record)

    def _fields(self, line: str) -> Record:
        if '"' not in line:
            return [field or None for field in line.split(self.delimiter)]
        fields: Record = []
        at = 0
        while True:
            field, at = self._next(line, at)
            fields.append(field)
            if at >= len(line):
                return fields
            at += len(self.delimiter)

    def _next(self, text: str, at: int) -> tuple[Field, int]:
        match = self._field.match(text, at)
        if match is None:  # impossible: the second form matches anything
            raise ValueError(f"no field at character {at}")
        content, tail, plain = match.groups()
        field = plain or None if content is None else content.replace('""', '"') + tail
        return field, match.end()

    def _across_lines(self, text: str) -> Iterator[Record]:
        fields: Record = []
        at, length = 0, len(text)
        while at < length:
            field, at = self._next(text, at)
            fields.append(field)
            if text.startswith(self.delimiter, at):
                at += len(self.delimiter)
                if at < length:
                    continue
                fields.append(None)  # the text ends with a delimiter
            else:
                at += 2 if text.startswith("\r\n", at) else 1
            if fields != [None]:
                yield fields
            fields = []
