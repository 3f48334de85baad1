"""Text files: which bytes a piece owns, and their encoding.

A piece owns the records that begin in it (reference §4.5). So the first bytes of a piece that is not aligned belong to
the piece before, and its last record is read to its end, wherever that is.
"""

import codecs
from typing import BinaryIO, NamedTuple

from parallelrun_worker.tables.ranges import read_range, read_some, size_of

_BLOCK = 1 << 16
_BOMS = {b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


class Encoding(NamedTuple):
    """How the bytes of one file are read."""

    name: str
    newline: bytes
    width: int
    """Bytes of one code unit."""
    bom: int
    """Length of the byte order mark."""


def encoding_of(file: BinaryIO, wanted: str) -> Encoding:
    """The encoding of a file: by its byte order mark, or as the table has it."""
    head = read_some(file, 3, 0)
    for mark, name in _BOMS.items():
        if head.startswith(mark) and name.startswith(wanted[:6] if wanted == "utf-16" else wanted):
            return _encoding(name, len(mark))
    return _encoding("utf-16-le" if wanted == "utf-16" else wanted, 0)


def _encoding(name: str, bom: int) -> Encoding:
    newline = "\n".encode(name)
    return Encoding(name, newline, len(newline), bom)


def owned_bytes(file: BinaryIO, start: int, end: int, encoding: Encoding, *, is_aligned: bool) -> bytes:
    """The records that begin at or after `start` and before `end` (-1: the file's end), complete."""
    size = size_of(file)
    end = size if end < 0 else min(end, size)
    start = max(start, encoding.bom)
    if is_aligned:
        return read_range(file, start, max(start, end))
    width = encoding.width
    start, end = -(-start // width) * width, -(-end // width) * width
    if start > encoding.bom:
        start = after_newline(file, start - width, encoding)
    if start >= end:
        return b""
    last = end if end >= size else after_newline(file, end - width, encoding)
    return read_range(file, start, last)


def after_newline(file: BinaryIO, at: int, encoding: Encoding) -> int:
    """The end of the first newline at or after `at`; the file's end when there is none."""
    while block := read_some(file, _BLOCK, at):
        newline = find_newline(block, 0, encoding)
        if newline >= 0:
            return at + newline + encoding.width
        at += len(block)
    return at


def find_newline(data: bytes, at: int, encoding: Encoding) -> int:
    """The first real newline from `at` on: in UTF-16, not across two characters; -1 when there is none."""
    place = data.find(encoding.newline, at)
    while place >= 0 and place % encoding.width:
        place = data.find(encoding.newline, place + 1)
    return place


def header_bytes(file: BinaryIO, encoding: Encoding, *, multi_line: bool) -> tuple[bytes, int]:
    """The first record that is not an empty line, and where the next one begins."""
    data, at = b"", encoding.bom
    quotes, carriage_return = '"'.encode(encoding.name), "\r".encode(encoding.name)
    while block := read_some(file, _BLOCK, at + len(data)):
        data += block
        begin = 0
        while (newline := find_newline(data, begin, encoding)) >= 0:
            line = data[:newline]
            begin = newline + encoding.width
            if line in (b"", carriage_return):
                at, data, begin = at + begin, data[begin:], 0
            elif not multi_line or line.count(quotes) % 2 == 0:
                return line, at + begin
    return data, at + len(data)


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


def to_utf8(data: bytes, encoding: Encoding) -> bytes:
    """The same text as UTF-8; text that is UTF-8 already is checked when it is read.

    Raises:
        UnicodeDecodeError: the text is not in this encoding.
    """
    if encoding.name == "utf-8" or (encoding.width == 1 and data.isascii()):
        return data
    if encoding.name == "cp1252":  # five of its bytes are undefined for Python; the web reads them as Latin 1
        codecs.register_error("parallelrun.latin1", _as_latin_1)
        return data.decode("cp1252", "parallelrun.latin1").encode()
    return data.decode(encoding.name).encode()
