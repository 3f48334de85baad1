"""Parts of a table's file that a mini-batch needs: so many bytes from a place on, or from there to a record's end."""

from __future__ import annotations

from typing import Final, NamedTuple

from parallelrun_core.mltable.read_step import Text
from parallelrun_core.wire.message import Piece

_HEAD: Final = 4 << 10
"""What is fetched of a file's beginning, at first: it tells the encoding, and has the header."""
_WIDEST: Final = 4
"""Bytes of the widest code unit."""
_MARGIN: Final = (1 << 10, 64 << 10)
"""What is fetched after a range for the end of its last record, at first: a hundredth of it, within these."""


class Rest(NamedTuple):
    """The rest that follows a part's end and belongs to it, as only reading tells."""

    text: Text
    record_at: int = -1
    """All of the record that this place is in; -1: no record is cut in two."""
    has_header: bool = False
    """All of the file's first record."""
    owns_all: bool = False
    """All of the file, if it is compressed: its first piece has all of its records."""


class FilePart(NamedTuple):
    start: int
    end: int
    rest: Rest | None = None


def parts_of(piece: Piece, size: int, text: Text | None) -> list[FilePart]:
    """The parts that it takes to read a piece.

    Args:
        size: of its file.
        text: how it is read, if it is text.
    """
    if piece.remote is not None and piece.remote.extents:
        return [FilePart(start, end) for start, end in piece.remote.extents]
    if piece.end < 0 or text is None:
        return [FilePart(0, size)]
    body = _body(piece, size, text)
    head = FilePart(0, min(_HEAD, size))
    rest = Rest(text, has_header=text.is_delimited) if head.end < size else None
    if body.start > head.end:
        return [head._replace(rest=rest), body]
    rest = rest._replace(owns_all=not piece.start) if rest is not None else None
    if rest is not None and body.rest is not None:
        rest = rest._replace(record_at=body.rest.record_at)
    return [FilePart(0, max(head.end, body.end), rest or body.rest)]


def _body(piece: Piece, size: int, text: Text) -> FilePart:
    end = min(piece.end, size)
    if piece.is_aligned:
        return FilePart(piece.start, end)
    low, high = _MARGIN
    stop = min(size, end + min(max(low, (end - piece.start) // 100), high))
    start = max(0, piece.start - _WIDEST)  # the line end before the piece
    return FilePart(start, stop, Rest(text, record_at=end) if stop < size else None)
