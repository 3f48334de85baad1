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

from parallelrun_core.storage.interface import read_at, size_of
from parallelrun_master.planning.record_bits import Offsets, Words, bits_of, following, odd_from, preceding
from parallelrun_master.planning.text_form import TextForm
from parallelrun_worker.tables.line_ends import returns_at_ends
from parallelrun_worker.tables.text import without_end_mark

BLOCK_BYTES: Final = 1 << 20
"""How much of a file is looked at once, unless a record is longer."""
_LONGEST: Final = 64 << 20
"""A longer record is not searched for its end: all from there on is one piece."""
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34

Text = npt.NDArray[np.unsignedinteger]


class Starts(NamedTuple):
    """The beginnings of the records of a text."""

    words: Words
    has_sound_quotes: bool
    """Each quote is beside a delimiter, a line end or another quote, and none is left open."""


def record_starts(file: BinaryIO, form: TextForm) -> Iterator[Offsets]:
    """Yield where records begin, in order; empty lines are not records, and the end of the file begins none."""
    size = size_of(file)
    at, block = form.start, BLOCK_BYTES
    while at < size:
        data = read_at(file, at, block)
        data = data[: len(data) // form.width * form.width]
        if not data:
            return
        is_last = at + len(data) >= size
        if is_last and not (data := without_end_mark(data, form.encoding)):
            return
        words, has_sound_quotes = _starts(data, form, is_last=is_last)
        starts = Offsets(words, at, form.width, has_sound_quotes=has_sound_quotes)
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


def _starts(data: bytes, form: TextForm, *, is_last: bool) -> Starts:
    """Return where records begin in `data`, which begins with one."""
    text: Text = np.frombuffer(data, dtype=form.unit)
    newlines = bits_of(text == _NEWLINE)
    has_sound_quotes = not form.comment
    if b"\r" in data and np.any(bits_of(_returns(text, is_last=is_last)) & ~preceding(newlines)):
        has_sound_quotes = False
        if form.multi_line and form.fields is None and not _has_sound_quotes(text, form):
            return Starts(_exact_starts(data, form, is_last=is_last), has_sound_quotes)
        text = _with_newlines(text, form)
        data, newlines = text.tobytes(), bits_of(text == _NEWLINE)
    ends = newlines
    if form.multi_line and b'"' in data:
        quotes = bits_of(text == _QUOTE)
        inside = odd_from(quotes)
        around = newlines | quotes | _delimiters(text, form)
        if not _are_in_place(around, quotes & inside, form):
            return Starts(_exact_starts(data, form, is_last=is_last), has_sound_quotes=False)
        ends = newlines & ~inside
        if has_sound_quotes:
            has_sound_quotes = _are_closed(text, around, quotes & ~inside) and not (is_last and _is_odd(inside, text))
    starts = following(ends, first=True)
    starts[len(text) // 64 :] &= np.uint64((1 << len(text) % 64) - 1)  # those after the end of the text are not there
    empty = newlines
    if b"\r" in data:
        followed = preceding(newlines)
        if is_last:
            followed[-1] |= np.uint64(1 << (len(text) - 1) % 64)
        empty = newlines | (bits_of(text == _RETURN) & followed)
    empty = empty | bits_of(text == ord(form.comment)) if form.comment else empty
    return Starts(starts & ~empty, has_sound_quotes)


def _returns(text: Text, *, is_last: bool) -> npt.NDArray[np.bool_]:
    """Find the carriage returns. One at the end of a block may be before a newline: the next block has it again."""
    returns: npt.NDArray[np.bool_] = text == _RETURN
    returns[-1] &= is_last
    return returns


def _with_newlines(text: Text, form: TextForm) -> Text:
    """The text, with newlines for the carriage returns that end records, as the worker reads them."""
    text = text.copy()
    if form.grammar is None or (form.fields is None and not form.multi_line):
        text[text == _RETURN] = _NEWLINE
    else:
        text[returns_at_ends(text, form.grammar, form.fields)] = _NEWLINE
    return text


def _has_sound_quotes(text: Text, form: TextForm) -> bool:
    quotes = bits_of(text == _QUOTE)
    breaks = bits_of((text == _NEWLINE) | (text == _RETURN))
    return _are_in_place(breaks | quotes | _delimiters(text, form), quotes & odd_from(quotes), form)


def _delimiters(text: Text, form: TextForm) -> Words:
    return bits_of(text == np.frombuffer(form.delimiter, dtype=form.unit)[0])


def _are_in_place(around: Words, opening: Words, form: TextForm) -> bool:
    """Return whether every opening quote is after a delimiter, a newline or another quote, which are `around` it."""
    return len(form.delimiter) == form.width and not np.any(opening & ~following(around, first=True))


def _are_closed(text: Text, around: Words, closing: Words) -> bool:
    """Return whether every closing quote is before such a character, before a carriage return, or at the end."""
    last = np.uint64(1 << (len(text) - 1) % 64)
    closing[(len(text) - 1) // 64] &= ~last
    others = closing & ~preceding(around)
    return not np.any(others) or not np.any(others & ~preceding(bits_of(text == _RETURN)))


def _is_odd(inside: Words, text: Text) -> bool:
    """Return whether a quote is open at the end of a text."""
    return bool(int(inside[(len(text) - 1) // 64]) >> (len(text) - 1) % 64 & 1)


def _exact_starts(data: bytes, form: TextForm, *, is_last: bool) -> Words:
    """Find the starts by the grammar. What more data might change is left for the next block."""
    begins = np.zeros(len(data) // form.width, dtype=bool)
    begins[0] = True
    if form.width > 1:
        return bits_of(begins)
    mark = re.escape(form.delimiter)
    breaks = rb"\r\n" if form.fields is None else rb"\n"
    end = rb"(?=" + mark + rb"|[" + breaks + rb"]|\Z)"
    tail = rb"(?:(?!" + mark + rb")[^" + breaks + rb"])*" + end
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
    empty: tuple[bytes, ...] = (b"\n", b"\r") if form.fields is None else (b"\n", b"\r\n")
    empty = (*empty, form.comment.encode()) if form.comment else empty
    begins[[start for start in starts if start < length and not data.startswith(empty, start)]] = True
    return bits_of(begins)
