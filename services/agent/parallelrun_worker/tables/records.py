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
BYTE_ORDER_MARK = "\ufeff".encode()
"""Between the rows of a text, a part of a value; at the beginning of what they are given, libraries leave it out."""


class NotPlain(Exception):
    """A faster parser would not read this text as the grammar does, or may not."""


class Grammar:
    """The grammar that cuts the text of one table into records and fields."""

    def __init__(self, delimiter: str, *, multi_line: bool) -> None:
        self.delimiter = delimiter
        self.multi_line = multi_line
        self._field = _field_pattern(delimiter, r"\n|\r\n|\r?\Z" if multi_line else r"\Z")

    def records(self, text: str) -> Iterator[Record]:
        """Every record that is not an empty line."""
        return self._across_lines(text) if self.multi_line else self._by_lines(text)

    def first(self, text: str, *, has_returns: bool) -> tuple[Record, int]:
        """The first record of a file, and where the next one begins.

        A carriage return outside quotes ends it if its line has more fields than the part before, or if it has one.

        Args:
            text: begins with a whole record, or with a whole line if fields may not hold newlines.
            has_returns: lines end with carriage returns, in any case.
        """
        start = 0
        for end in self.ends(text, r"\n|\Z"):
            line = text[start:end]
            if line.strip("\r\n"):
                break
            start = end
        else:
            return [], len(text)
        record, begin = next(self.records(line)), 0
        for after in self.ends(line, r"\n|\r|\Z"):
            part = line[begin:after].strip("\r\n")
            if part:
                first = next(self.records(part))
                is_split = has_returns or len(first) < len(record) or len(first) == 1
                return (first, start + after) if is_split else (record, end)
            begin = after
        return record, end

    def ends(self, text: str, ends: str = r"\n|\r|\Z") -> Iterator[int]:
        """Return where records and empty lines end of a text.

        Args:
            ends: of a record, outside quotes, as a regular expression: of newlines, or of carriage returns, too.
        """
        inside = '[^"]' if self.multi_line else '[^"\n]'
        field = _field_pattern(self.delimiter, ends, inside)
        breaks = "\r\n" if "r" in ends else "\n"
        at, length = 0, len(text)
        while at < length:
            at = self._next(text, at, field)[1]
            if text.startswith(self.delimiter, at):
                at += len(self.delimiter)
            if at >= length or text[at] in breaks:
                at += 2 if text.startswith("\r\n", at) else 1
                yield min(at, length)

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

    def _next(self, text: str, at: int, field_pattern: re.Pattern[str] | None = None) -> tuple[Field, int]:
        match = (field_pattern or self._field).match(text, at)
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


def _field_pattern(delimiter: str, ends: str, inside: str = '[^"]') -> re.Pattern[str]:
    """Return what a field is like if records end like this.

    Args:
        inside: what a quoted field may hold, beside doubled quotes.
    """
    mark = re.escape(delimiter)
    end = rf"(?={mark}|{ends})"
    plain = rf"((?:(?!{mark})[^\n])*?){end}"
    return re.compile(rf'"({inside}*(?:""{inside}*)*)"(?!"){plain}|{plain}', re.DOTALL)
