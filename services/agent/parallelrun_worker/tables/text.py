"""Text files: which bytes a piece owns, and their encoding.

A piece owns the records that begin in it (reference §4.5). So the first bytes of a piece that is not aligned belong to
the piece before, and its last record is read to its end, wherever that is.
"""

import codecs
from typing import BinaryIO

from parallelrun_worker.tables.elsewhere import read_range, read_some, size_of
from parallelrun_worker.tables.sniffing import Encoding, sniffed

_BLOCK = 1 << 16
_COUNTED = 1 << 20
_END_MARK = "\x1a"
_TURNED_MARK = "\ufffe"
"""What a byte order mark is when its bytes are read in the other order; no text has this character."""


def encoding_of(file: BinaryIO, declared: str) -> Encoding:
    """The encoding of a file: by what its first bytes prove, or else as its table has it.

    Raises:
        NotText: it is no text.
        OSError: it can't be read.
    """
    return sniffed(lambda size, at: read_some(file, size, at), declared)


def owned_range(file: BinaryIO, start: int, end: int, encoding: Encoding, *, is_aligned: bool, first: int = 0) -> range:
    """Return where the records are that begin at or after `start` and before `end` (-1: the file's end), complete.

    Args:
        first: where the first record of the file begins; 0: after its byte order mark.
    """
    size = size_of(file)
    end = size if end < 0 else min(end, size)
    first = max(first, encoding.bom)
    if is_aligned:
        start = max(start, first)
        return range(start, max(start, end))
    width = encoding.width
    start, end = -(-start // width) * width, -(-end // width) * width
    start = first if start <= first else after_newline(file, start - width, encoding)
    if start >= end:
        return range(start, start)
    return range(start, end if end >= size else max(start, after_newline(file, end - width, encoding)))


def owned_bytes(file: BinaryIO, start: int, end: int, encoding: Encoding, *, is_aligned: bool, first: int = 0) -> bytes:
    """The records in `owned_range`."""
    owned = owned_range(file, start, end, encoding, is_aligned=is_aligned, first=first)
    return read_range(file, owned.start, owned.stop)


def without_end_mark(data: bytes, encoding: Encoding) -> bytes:
    """The end of a text without the control characters Z with which programs for DOS and CP/M mark it."""
    mark = _END_MARK.encode(encoding.name)
    end = len(data)
    while data.endswith(mark, 0, end) and not end % len(mark):
        end -= len(mark)
    return data if end == len(data) else data[:end]


def after_newline(file: BinaryIO, at: int, encoding: Encoding) -> int:
    """The end of the first line end at or after `at`; the file's end when there is none."""
    while block := read_some(file, _BLOCK, at):
        newline = find_newline(block, 0, encoding)
        if newline >= 0:
            return at + newline + encoding.width
        at += len(block)
    return at


def find_newline(data: bytes, at: int, encoding: Encoding) -> int:
    """The first line end from `at` on, which is not across two characters; -1 when there is none."""
    place = data.find(encoding.newline, at)
    while place >= 0 and place % encoding.width:
        place = data.find(encoding.newline, place + 1)
    return place


def lines_before(file: BinaryIO, end: int, encoding: Encoding) -> int:
    """Return how many lines end before a place in a file where one begins."""
    count, at = 0, 0
    decode = codecs.getincrementaldecoder(encoding.name if encoding.width > 1 else "latin-1")("replace").decode
    was_return = False
    while at < end and (block := read_some(file, min(_COUNTED, end - at), at)):
        at += len(block)
        text = decode(block)
        count += text.count("\n") + text.count("\r") - text.count("\r\n") - (was_return and text.startswith("\n"))
        was_return = text.endswith("\r")
    return count


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


def as_utf8(data: bytes, encoding: Encoding) -> bytes:
    """Text as UTF-8, with a replacement character for what is not in its encoding: good enough to infer types."""
    try:
        return to_utf8(data, encoding)
    except UnicodeDecodeError:
        return data.decode(encoding.name, "replace").encode()


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def to_utf8(data: bytes, encoding: Encoding) -> bytes:
    """Return text as UTF-8; text that is UTF-8 already is checked when it is read.

    Raises:
        UnicodeDecodeError: the text is not in this encoding.
    """
    if encoding.name == "utf-8" or (encoding.width == 1 and data.isascii()):
        return data
    if encoding.name == "cp1252":  # five of its bytes are undefined for Python; the web reads them as Latin 1
        codecs.register_error("parallelrun.latin1", _as_latin_1)
        return data.decode("cp1252", "parallelrun.latin1").encode()
    text = data.decode(encoding.name)
    if encoding.width > 1 and _TURNED_MARK in text:
        at = len(text[: text.index(_TURNED_MARK)].encode(encoding.name))
        raise UnicodeDecodeError(encoding.name, data, at, at + encoding.width, "a byte order mark of the other order")
    return text.encode()
