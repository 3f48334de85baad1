"""Delimited text with carriage returns that end records, for parsers that want newlines.

In a file whose beginning has no other line end, each of them does, unless a quoted field holds it. In any other file
one may as well be a part of a value: it ends a record if its line has more fields than the table has columns.
"""

import re
from typing import Any

from parallelrun_worker.tables.by_pandas import quotes_checked
from parallelrun_worker.tables.records import Grammar, NotPlain

_LF, _CR, _QUOTE = ord("\n"), ord("\r"), ord('"')
_RETURNS = re.compile(rb"\r{2,}\n")


def has_lone_returns(data: bytes) -> bool:
    """Return whether a carriage return is there that no newline follows, of a text in UTF-8."""
    if b"\r" not in data:
        return False
    import numpy as np

    text = np.frombuffer(data, dtype=np.uint8)
    after = np.flatnonzero(text == _CR) + 1  # counting both takes twice as long
    return bool((text.take(after, mode="clip") != _LF).any())


def with_single_returns(data: bytes, grammar: Grammar) -> bytes:
    """Return the records with one carriage return before each newline.

    A program that writes CR LF for each newline makes CR CR LF of a line end that was CR LF. A quoted field that may
    hold newlines keeps what it has.
    """
    if b"\r\r\n" not in data:
        return data
    if not grammar.multi_line or b'"' not in data:
        return _RETURNS.sub(b"\r\n", data)
    text, records, start = data.decode(), [], 0
    for end in grammar.ends(text, r"\n|\Z"):
        record = text[start:end]
        records.append(record.rstrip("\r\n") + "\r\n" if record.endswith("\r\r\n") else record)
        start = end
    return "".join(records).encode()


def with_newlines(data: bytes, grammar: Grammar, width: int | None) -> bytes:
    """Return the records, each with a newline at its end.

    Args:
        data: whole records in UTF-8.
        width: how many fields the first record of the file has; None: its lines end with carriage returns.
    """
    if width is None and not grammar.multi_line:  # in quotes as well, as a newline would
        return data.replace(b"\r", b"\n")
    if b'"' in data and (width is None or grammar.multi_line) and not _has_sound_quotes(data, grammar):
        text = data.decode()
        return _at_ends(text, grammar).encode() if width is None else _by_record(text, grammar, width)
    return _each_end_replaced(data, grammar, width)


def _has_sound_quotes(data: bytes, grammar: Grammar) -> bool:
    """Return whether an even number of quotes precedes exactly those line ends that no field holds."""
    mark = grammar.delimiter.encode()
    try:
        if len(mark) == 1:
            quotes_checked(data.replace(b"\r", b"\n"), mark, multi_line=True)
            return True
    except NotPlain:
        pass
    return False


def _by_record(text: str, grammar: Grammar, width: int) -> bytes:
    """Return the text, each record by itself: quotes that open no field say nothing of the records behind them."""
    records, start = [], 0
    for end in grammar.ends(text, r"\n|\Z"):
        record = text[start:end].encode()
        records.append(_each_end_replaced(record, grammar, width) if b"\r" in record else record)
        start = end
    return b"".join(records)


def _each_end_replaced(data: bytes, grammar: Grammar, width: int | None) -> bytes:
    import numpy as np

    text = np.frombuffer(data, dtype=np.uint8).copy()
    text[returns_at_ends(text, grammar, width)] = _LF
    return text.tobytes()


def _at_ends(text: str, grammar: Grammar) -> str:
    records, start = [], 0
    for end in grammar.ends(text):
        record = text[start:end]
        records.append(f"{record[:-1]}\n" if record.endswith("\r") else record)
        start = end
    return "".join(records)


def returns_at_ends(text: Any, grammar: Grammar, width: int | None) -> Any:
    """Return where in a text the carriage returns are that end a record, and no newline follows.

    Args:
        text: NumPy array of its characters, or of the bytes of UTF-8; begins with a record.
        width: as of `with_newlines`.
    """
    import numpy as np

    at = np.flatnonzero(text == _CR)
    if not len(at):
        return at
    at = at[text[np.minimum(at + 1, len(text) - 1)] != _LF]
    at = at[at < len(text) - 1] if width is not None else at
    if not len(at):
        return at
    quotes = np.flatnonzero(text == _QUOTE)
    breaks = np.flatnonzero(text == _LF)
    if grammar.multi_line:
        breaks = breaks[np.searchsorted(quotes, breaks) % 2 == 0]
    line_starts = np.concatenate([[0], breaks + 1])

    def outside_quotes(places: Any) -> Any:
        lines = np.searchsorted(breaks, places)
        return places[(np.searchsorted(quotes, places) - np.searchsorted(quotes, line_starts[lines])) % 2 == 0]

    at = outside_quotes(at)
    if width is None:
        return at
    marks = text == ord(grammar.delimiter[0])
    for number, character in enumerate(grammar.delimiter[1:], start=1):
        marks[:-number] &= text[number:] == ord(character)
        marks[-number:] = False
    delimiters = outside_quotes(np.flatnonzero(marks))
    lines = np.searchsorted(breaks, at)
    line_ends = np.append(breaks, len(text))
    counts = np.searchsorted(delimiters, line_ends[lines]) - np.searchsorted(delimiters, line_starts[lines])
    return at[(counts >= width) | (width == 1)]


def without_comments(data: bytes, comment: str, grammar: Grammar) -> bytes:
    """Whole records without those that begin with the mark of a comment."""
    mark = comment.encode()
    if not data.startswith(mark) and b"\n" + mark not in data:
        return data
    if not grammar.multi_line or b'"' not in data:
        return b"".join(line for line in re.split(rb"(?<=\n)", data) if not line.startswith(mark))
    text, parts, start = data.decode(), [], 0
    for end in grammar.ends(text, r"\n|\Z"):
        if not text.startswith(comment, start):
            parts.append(text[start:end])
        start = end
    return "".join(parts).encode()
