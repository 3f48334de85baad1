"""Finds where the records of a text file begin, in one pass, with a few MiB of memory whatever the file's size.

Needed where bytes alone don't tell: when quoted fields may hold newlines, and when rows are counted. Blocks are looked
at as arrays. Where every quote is where it belongs (behind a delimiter, a newline or another quote), a newline is the
end of a record when an even number of quotes stands before it. A block with a quote elsewhere is taken apart field by
field, as the reader will do it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

import numpy as np
import numpy.typing as npt

_BLOCK: Final = 4 << 20
_LONGEST: Final = 64 << 20
"""A record that is longer is not looked into: all from there on is one piece."""
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34

Offsets = npt.NDArray[np.int64]


class TextForm(NamedTuple):
    """What has to be known of a text file to find its records."""

    unit: str
    """NumPy's name for one character."""
    width: int
    bom: int
    delimiter: bytes
    multi_line: bool


def form_of(file: BinaryIO, encoding: str, delimiter: str = ",", *, multi_line: bool = False) -> TextForm:
    """What a file's first bytes and its table's settings say."""
    head = os.pread(file.fileno(), 3, 0)
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
    """Yield where records begin that are not empty lines, in order; the end of the file is none."""
    size = os.fstat(file.fileno()).st_size
    at, block = form.bom, _BLOCK
    while at < size:
        data = os.pread(file.fileno(), block, at)
        data = data[: len(data) // form.width * form.width]
        if not data:
            return
        is_last = at + len(data) >= size
        starts = _starts(data, form, is_last=is_last)
        if is_last:
            yield at + starts
            return
        if len(starts) < 2:  # one record, and its end is not here
            if block >= _LONGEST:
                yield at + starts
                return
            block *= 2
            continue
        yield at + starts[:-1]
        at += int(starts[-1])
        block = _BLOCK


def _starts(data: bytes, form: TextForm, *, is_last: bool) -> Offsets:
    """Where records begin in `data`, which begins with one."""
    text = np.frombuffer(data, dtype=form.unit)
    newlines = np.flatnonzero(text == _NEWLINE)
    if form.multi_line:
        quotes = np.flatnonzero(text == _QUOTE)
        if len(quotes):
            if not _are_in_place(text, quotes, form):
                return _exact_starts(data, form, is_last=is_last)
            newlines = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    candidates = np.concatenate(([0], newlines + 1))
    candidates = candidates[candidates < len(text)]
    following = text[candidates]
    second = text[np.minimum(candidates + 1, len(text) - 1)]
    is_empty = (following == _NEWLINE) | ((following == _RETURN) & (second == _NEWLINE))
    if is_last:
        is_empty |= (following == _RETURN) & (candidates == len(text) - 1)
    found: Offsets = candidates[~is_empty].astype(np.int64) * form.width
    return found


def _are_in_place(text: npt.NDArray[np.unsignedinteger], quotes: npt.NDArray[np.intp], form: TextForm) -> bool:
    """Whether every quote that opens is behind a delimiter, a newline or another quote."""
    opening = quotes[::2]
    before = np.where(opening > 0, text[opening - 1], _NEWLINE)
    mark = np.frombuffer(form.delimiter, dtype=form.unit)[-1]
    fits = (before == mark) | (before == _NEWLINE) | (before == _QUOTE)
    return len(form.delimiter) == form.width and bool(fits.all())


def _exact_starts(data: bytes, form: TextForm, *, is_last: bool) -> Offsets:
    """The same, by the grammar. What may look otherwise with more data behind it is left for the next block."""
    if form.width == 2:
        return np.array([0], dtype=np.int64)
    mark = re.escape(form.delimiter)
    end = rb"(?=" + mark + rb"|\n|\Z)"
    tail = rb"(?:(?!" + mark + rb")[^\n])*" + end
    field = re.compile(rb'(?P<quoted>"[^"]*(?:""[^"]*)*"(?!")' + tail + rb")|" + tail)
    starts, at, length = [0], 0, len(data)
    while at < length:
        found = field.match(data, at)
        if found is None or (data[at] == _QUOTE and found["quoted"] is None and not is_last):
            break  # it is closed behind this block, or never
        at = found.end()
        if data.startswith(form.delimiter, at):
            at += len(form.delimiter)
        elif at < length:
            at += 1
            starts.append(at)
    kept = [start for start in starts if start < length and not data.startswith((b"\n", b"\r\n"), start)]
    return np.array(kept, dtype=np.int64)
