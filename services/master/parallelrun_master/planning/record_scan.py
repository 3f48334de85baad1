"""Finds where the records of a text file begin, in one pass, with a few MiB of memory, whatever the file's size.

Needed where bytes alone don't tell: when quoted fields may hold newlines, and when rows are counted. A block is treated
as sets of positions (record_bits.py). If every opening quote is where it belongs (after a delimiter, a newline or
another quote), a newline ends a record when an even number of quotes precedes it. A block with a quote elsewhere is
parsed field by field, as the reader will do it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from parallelrun_core.storage.ranges import read_at, size_of
from parallelrun_master.planning.record_bits import Offsets, Words, bits_of, following, odd_from, preceding

BLOCK_BYTES: Final = 1 << 20
"""How much of a file is looked at once, unless a record is longer."""
_LONGEST: Final = 64 << 20
"""A longer record is not searched for its end: all from there on is one piece."""
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34

Text = npt.NDArray[np.unsignedinteger]


class TextForm(NamedTuple):
    """What has to be known about a text file to find its records."""

    unit: str
    """NumPy's name for one character."""
    width: int
    bom: int
    delimiter: bytes
    multi_line: bool


def form_of(file: BinaryIO, encoding: str, delimiter: str = ",", *, multi_line: bool = False) -> TextForm:
    """What a file's first bytes and its table's settings say."""
    head = read_at(file, 0, 3)
    if encoding != "utf-16":
        bom = 3 if encoding == "utf-8" and head == b"\xef\xbb\xbf" else 0
        name = encoding if encoding != "cp1252" else "latin-1"
        return TextForm("u1", 1, bom, delimiter.encode(name, "replace"), multi_line)
    is_big = head.startswith(b"\xfe\xff")
    bom = 2 if is_big or head.startswith(b"\xff\xfe") else 0
    return TextForm(
        ">u2" if is_big else "<u2", 2, bom, delimiter.encode("utf-16-be" if is_big else "utf-16-le"), multi_line
    )


def record_starts(file: BinaryIO, form: TextForm) -> Iterator[Offsets]:
    """Yield where records begin, in order; empty lines are not records, and the end of the file begins none."""
    size = size_of(file)
    at, block = form.bom, BLOCK_BYTES
    while at < size:
        data = read_at(file, at, block)
        data = data[: len(data) // form.width * form.width]
        if not data:
            return
        is_last = at + len(data) >= size
        starts = Offsets(_starts(data, form, is_last=is_last), at, form.width)
        if is_last:
            yield starts
            return
        if len(starts) < 2:  # one record, and its end is not here
            if block >= _LONGEST:
                yield starts
                return
            block *= 2
            continue
        yield starts.part(0, len(starts) - 1)
        at = starts[len(starts) - 1]
        block = BLOCK_BYTES


def _starts(data: bytes, form: TextForm, *, is_last: bool) -> Words:
    """Where records begin in `data`, which begins with one."""
    text: Text = np.frombuffer(data, dtype=form.unit)
    newlines = bits_of(text == _NEWLINE)
    ends = newlines
    if form.multi_line and b'"' in data:
        quotes = bits_of(text == _QUOTE)
        inside = odd_from(quotes)
        if not _are_in_place(text, newlines, quotes, quotes & inside, form):
            return _exact_starts(data, form, is_last=is_last)
        ends = newlines & ~inside
    starts = following(ends, first=True)
    starts[len(text) // 64 :] &= np.uint64((1 << len(text) % 64) - 1)  # those after the end of the text are not there
    empty = newlines
    if b"\r" in data:
        followed = preceding(newlines)
        if is_last:
            followed[-1] |= np.uint64(1 << (len(text) - 1) % 64)
        empty = newlines | (bits_of(text == _RETURN) & followed)
    return starts & ~empty


def _are_in_place(text: Text, newlines: Words, quotes: Words, opening: Words, form: TextForm) -> bool:
    """Whether every opening quote is after a delimiter, a newline or another quote."""
    if len(form.delimiter) != form.width:
        return False
    delimiters = bits_of(text == np.frombuffer(form.delimiter, dtype=form.unit)[0])
    return not np.any(opening & ~following(delimiters | newlines | quotes, first=True))


def _exact_starts(data: bytes, form: TextForm, *, is_last: bool) -> Words:
    """The same, by the grammar. What more data might change is left for the next block."""
    begins = np.zeros(len(data) // form.width, dtype=bool)
    begins[0] = True
    if form.width == 2:
        return bits_of(begins)
    mark = re.escape(form.delimiter)
    end = rb"(?=" + mark + rb"|\n|\Z)"
    tail = rb"(?:(?!" + mark + rb")[^\n])*" + end
    field = re.compile(rb'(?P<quoted>"[^"]*(?:""[^"]*)*"(?!")' + tail + rb")|" + tail)
    starts, at, length = [0], 0, len(data)
    while at < length:
        match = field.match(data, at)
        if match is None or (data[at] == _QUOTE and match["quoted"] is None and not is_last):
            break  # it is closed after this block, or never
        at = match.end()
        if data.startswith(form.delimiter, at):
            at += len(form.delimiter)
        elif at < length:
            at += 1
            starts.append(at)
    begins[0] = False
    begins[[start for start in starts if start < length and not data.startswith((b"\n", b"\r\n"), start)]] = True
    return bits_of(begins)
