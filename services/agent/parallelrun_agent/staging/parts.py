"""Which parts of a table's file a mini-batch needs: so many bytes from a place on, or from there to a record's end."""

from __future__ import annotations

from typing import Final, NamedTuple

from parallelrun_core.message import Piece
from parallelrun_core.mltable.read_step import Text

_HEAD: Final = 4 << 10
"""What is fetched for a header, at first."""
_BOM: Final = 4
_MARGIN: Final = (1 << 10, 64 << 10)
"""What is fetched after a range for the end of its last record, at first: a hundredth of it, within these."""


class Rest(NamedTuple):
    """What follows a part's end and belongs to it, as only reading tells."""

    text: Text
    record_at: int = -1
    """All up to the first newline from there on; -1: no record is cut in two."""
    has_header: bool = False
    """All of the file's first record."""


class Part(NamedTuple):
    """A range of a file."""

    start: int
    end: int
    rest: Rest | None = None


def parts_of(piece: Piece, size: int, text: Text | None) -> list[Part]:
    """The parts that it takes to read a piece.

    Args:
        size: of its file.
        text: how it is read, if it is text.
    """
    if piece.remote is not None and piece.remote.extents:
        return [Part(start, end) for start, end in piece.remote.extents]
    if piece.end < 0 or text is None:
        return [Part(0, size)]
    body = _body(piece, size, text)
    head = Part(0, min(_HEAD if text.may_have_header else _BOM, size))
    rest = Rest(text, has_header=True) if text.may_have_header and head.end < size else None
    if body.start > head.end:
        return [head._replace(rest=rest), body]
    if rest is not None and body.rest is not None:
        rest = rest._replace(record_at=body.rest.record_at)
    return [Part(0, max(head.end, body.end), rest or body.rest)]


def _body(piece: Piece, size: int, text: Text) -> Part:
    end = min(piece.end, size)
    if piece.is_aligned:
        return Part(piece.start, end)
    width = 2 if text.encoding.startswith("utf-16") else 1
    start, last = (-(-at // width) * width - width for at in (piece.start, end))
    low, high = _MARGIN
    stop = min(size, end + width * min(max(low, (end - piece.start) // 100), high))
    return Part(max(0, start), stop, Rest(text, record_at=last) if stop < size else None)
