"""The head of a file of delimited text: lines that are no records, and the header."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from parallelrun_worker.tables.charsets import refusing
from parallelrun_worker.tables.records import Grammar, Record
from parallelrun_worker.tables.sniffing import Encoding, ReadSome
from parallelrun_worker.tables.text import find_newline, to_utf8

_BLOCK = 1 << 16
_SEPARATOR = re.compile(r'"?sep=([^\r\n"])"?')
"""The first line of a file from Excel may say its delimiter."""


class HeadRules(NamedTuple):
    """The rules of a table for the beginnings of its files."""

    delimiter: str
    multi_line: bool
    has_header: bool
    skip_lines: int
    comment: str


class FileHead(NamedTuple):
    header: Record
    """Fields of the header; none if there isn't one."""
    start: int
    """The position where the rows begin."""
    delimiter: str
    """The delimiter of this file."""
    line: bytes = b""
    """The header as it stands in the file, in UTF-8, without its line end."""


def read_head(read_some: ReadSome, encoding: Encoding, rules: HeadRules) -> FileHead:
    """Read the beginning of a file.

    Raises:
        OtherEncoding: it is not in its encoding.
        OSError: it can't be read.
    """
    delimiter, is_first, end = rules.delimiter, True, encoding.bom
    lines = _lines(read_some, encoding)
    for start, line in islice(lines, rules.skip_lines, None):
        end = start + len(line)
        text = line.decode(encoding.name, "replace").strip("\r\n")
        if not text or (rules.comment and text.startswith(rules.comment)):
            continue
        if is_first and (separator := _SEPARATOR.fullmatch(text)):
            delimiter, is_first = separator[1], False
            continue
        if not rules.has_header:
            return FileHead([], start, delimiter)
        return _with_header(start, line, lines, encoding, rules._replace(delimiter=delimiter))
    return FileHead([], end, delimiter)


def _with_header(
    start: int, line: bytes, lines: Iterator[tuple[int, bytes]], encoding: Encoding, rules: HeadRules
) -> FileHead:
    quotes = '"'.encode(encoding.name)
    parts, count = [line], line.count(quotes)
    while rules.multi_line and count % 2 and (following := next(lines, None)):
        parts.append(following[1])
        count += following[1].count(quotes)
    line = b"".join(parts)
    with refusing(encoding, start, line):
        text = to_utf8(line, encoding).decode()
    record, end = Grammar(rules.delimiter, multi_line=rules.multi_line).first(text, has_returns=encoding.has_returns)
    length = len(line) if end == len(text) else _bytes_of(text[:end], line, encoding)
    return FileHead(record, start + length, rules.delimiter, text[:end].strip("\r\n").encode())


def _bytes_of(text: str, line: bytes, encoding: Encoding) -> int:
    """Return how many bytes the beginning of a line takes that ends with a line end."""
    if encoding.width > 1:
        return len(text.encode(encoding.name))
    ends = re.finditer(rb"[\r\n]", line)
    return next(islice(ends, text.count("\r") + text.count("\n") - 1, None)).end()


def _lines(read_some: ReadSome, encoding: Encoding) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, each with its line end, and where it begins."""
    at, data = encoding.bom, b""
    while block := read_some(_BLOCK, at + len(data)):
        data += block
        begin = 0
        while (newline := find_newline(data, begin, encoding)) >= 0:
            end = newline + encoding.width
            yield at + begin, data[begin:end]
            begin = end
        at, data = at + begin, data[begin:]
    if data:
        yield at, data
