"""Quotes that open a field of delimited text and may never have been meant to go on as far as they do.

By the grammar of records.py, a quote that is never closed is a character like others. Where fields may hold newlines,
the opening quote of a later field closes it instead: rows become one, and what follows that quote stands behind it.
"""

import re
from typing import NamedTuple

from parallelrun_worker.tables.data_warnings import DataWarning
from parallelrun_worker.tables.records import Grammar

_BLOCK = 1 << 18
_QUOTE, _NEWLINE, _RETURN = ord('"'), ord("\n"), ord("\r")


class OpenQuotes(NamedTuple):
    """The suspicious quotes of a piece."""

    at: int
    """Position of the first of them in its text."""
    times: int
    is_closed: bool
    """A quote on a later line has closed the first one, or one behind a backslash."""
    is_escaped: bool
    """A quote behind a backslash has closed it."""


def may_be_escaped(data: bytes, grammar: Grammar) -> bool:
    """Return whether a quote behind a backslash may be meant as a part of a value: quickly."""
    if b"\\" not in data:
        return False
    return re.search(rb'\\"[^"\r\n%b]' % re.escape(grammar.delimiter.encode()), data) is not None


def may_run_on(data: bytes, grammar: Grammar) -> bool:
    """Return whether a quote is not where it belongs: quickly, for a text whose fields may hold newlines."""
    return b'"' in data and not _are_all_in_place(data, grammar) and _may_run_on(data, grammar)


def _are_all_in_place(data: bytes, grammar: Grammar) -> bool:
    """Return whether quotes that open a field, and those that close one, are beside delimiters, line ends or quotes.

    Each second quote opens a field, or is the second of two that stand for one. What is looked at at once fits into a
    processor's cache.
    """
    import numpy as np

    mark = grammar.delimiter.encode()
    text = np.frombuffer(data, dtype=np.uint8)
    count, last = 0, len(text) - 1
    for start in range(0, len(text), _BLOCK):
        quotes = np.flatnonzero(text[start : start + _BLOCK] == _QUOTE)
        quotes += start
        before = text[quotes[count % 2 :: 2] - 1]  # of the first byte, the last one: a text ends with a newline
        after = text[np.minimum(quotes[1 - count % 2 :: 2] + 1, last)]
        if not ((before == mark[-1]) | (before == _QUOTE) | (before == _NEWLINE)).all():
            return False
        if not ((after == mark[0]) | (after == _QUOTE) | (after == _NEWLINE) | (after == _RETURN)).all():
            return False
        count += len(quotes)
    return count % 2 == 0


def _may_run_on(data: bytes, grammar: Grammar) -> bool:
    """Return whether a quoted field that holds a newline is followed by text, or a quote is nowhere closed."""
    import numpy as np

    text = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(text == _QUOTE)
    if len(quotes) % 2:
        return True
    opening, closing = quotes[::2], quotes[1::2]
    mark = grammar.delimiter.encode()
    before = np.where(opening > 0, text[opening - 1], _NEWLINE)
    begins = (before == mark[-1]) | (before == _NEWLINE)
    if not np.all(begins | (before == _QUOTE)):
        return True
    after = text[np.minimum(closing + 1, len(text) - 1)]
    is_followed = ~((after == mark[0]) | (after == _NEWLINE) | (after == _RETURN) | (after == _QUOTE))
    followed = np.flatnonzero(is_followed)
    if not len(followed):
        return False
    first_pairs = np.maximum.accumulate(np.where(begins, np.arange(len(opening)), 0))  # of the fields that they end
    newlines = np.flatnonzero(text == _NEWLINE)
    ends = np.searchsorted(newlines, closing[followed])
    return bool(np.any(ends > np.searchsorted(newlines, opening[first_pairs[followed]])))


def open_quotes(data: bytes, grammar: Grammar) -> OpenQuotes | None:
    """Return the quotes in a text (UTF-8) that open a field and aren't closed, or only on a later line, or behind a
    backslash, by a quote that more text follows; None: there are none."""
    first, times = None, 0
    for match in _pattern(grammar).finditer(data):
        is_closed = match["tail"] is not None
        is_escaped = is_closed and match["inside"].endswith(b"\\")
        if is_closed and not (match["tail"].strip(b"\r") and (is_escaped or b"\n" in match["inside"])):
            continue
        times += 1
        first = first or (match.start(), is_closed, is_escaped)
    return OpenQuotes(first[0], times, *first[1:]) if first is not None else None


def warning_of(quotes: OpenQuotes, file: str, line: int, offset: int, where: str = "") -> DataWarning:
    if quotes.is_escaped:
        event = "a quote behind a backslash has closed its field, which goes on behind it"
        remedy = "write a quote within quotes twice: a backslash before it says nothing in CSV"
    elif quotes.is_closed:
        event = (
            "the quote at the beginning of a field is closed only on a later line, and text follows: is one missing?"
        )
        remedy = "without support_multi_line, an option of the read step, each line is a row"
    else:
        event = "the quote at the beginning of a field is never closed, and was read as a character"
        remedy = "if the field goes on on the next line: support_multi_line: true, an option of the read step"
    return DataWarning("open_quote", file, "", f"{where}{event}", remedy, quotes.times, "field", line, offset)


def _pattern(grammar: Grammar) -> re.Pattern[bytes]:
    mark = re.escape(grammar.delimiter.encode())
    other, end = (rb'[^"]', rb"\Z") if grammar.multi_line else (rb'[^"\n]', rb"\n|\Z")
    inside = rb'(?P<inside>%b*(?:""%b*)*)' % (other, other)
    tail = rb"(?P<tail>(?:(?!%b)[^\n])*)" % mark
    return re.compile(rb'(?:(?<=%b)|(?<=\n)|\A)"%b(?:"(?!")%b|(?=%b))' % (mark, inside, tail, end))
