"""Delimited text to a DataFrame by pandas' own parser.

For plain text, which that parser can't read differently from the grammar of records.py. Whether a text is plain is
found out from its bytes, in a small part of the time that parsing takes.
"""

import re
from io import BytesIO
from typing import Any

from parallelrun_worker.tables.conversion import as_dates, as_ints, as_objects, convert
from parallelrun_worker.tables.inference import Kind
from parallelrun_worker.tables.records import BYTE_ORDER_MARK, Grammar, NotPlain
from parallelrun_worker.tables.schema import Schema
from parallelrun_worker.tables.values import Values

_BLANK_LINE = re.compile(rb"\n[ \t]+\r?(?:\n|\Z)")
_SEPARATOR = b"\x1f"
_EMPTY_TEXT = b"\x1a\x1a"
"""Stands for an empty quoted field, which pandas takes for null; as long as the two quotes."""
_AS_TEXT = ("string", "datetime", "bool", "stream_info")


def read_delimited(
    data: bytes, schema: Schema, grammar: Grammar, *, empty_as_string: bool, values: Values | None = None
) -> Any:
    """The records in `data`, UTF-8, as a DataFrame; `values` as in parsers.py.

    Raises:
        NotPlain: pandas would not read these bytes as the grammar does.
        UnicodeDecodeError: it isn't UTF-8.
    """
    import pandas as pd

    text, delimiter = _checked(data, grammar)
    first = next(grammar.records(_head(data, grammar)), [])
    if not first or len(first) > len(schema.names):
        raise NotPlain
    is_marked = text is not data
    texts = {at for at, kind in enumerate(schema.kinds) if kind["kind"] in _AS_TEXT}
    sure = {"int", "float"} if values is None or not _may_have_odd_numbers(data, grammar) else {"float"}
    frame = _parsed(text, delimiter, len(schema.names), texts, set(), is_marked=is_marked)
    # pandas leaves out lines of blanks, which are records; where each line has become a row, there are none.
    lines = text.count(b"\n") + (not text.endswith(b"\n"))
    if lines != len(frame) and (_BLANK_LINE.search(data) or _BLANK_LINE.search(b"\n" + data[:4096])):
        raise NotPlain
    misfits = {
        at
        for at, kind in enumerate(schema.kinds)
        if at not in texts and not (kind["kind"] in sure and _fits(frame[at], kind, is_strict=values is not None))
    }
    raw = _parsed(text, delimiter, len(schema.names), texts, misfits, is_marked=is_marked) if misfits else frame
    columns = {}
    for at, (name, kind) in enumerate(zip(schema.names, schema.kinds, strict=True)):
        if values is not None and (at in misfits or kind["kind"] in ("bool", "datetime")):
            words = as_objects(raw[at]).replace(_EMPTY_TEXT.decode(), "") if is_marked else as_objects(raw[at])
            column = values.of_column(name, kind).column(words.tolist())
        else:
            column = convert(as_objects(raw[at]), kind) if at in misfits else _finished(frame[at], kind)
        if is_marked and at in texts and kind["kind"] != "datetime":
            column = column.mask(column == _EMPTY_TEXT.decode(), "")
        if empty_as_string and kind["kind"] == "string":
            column = column.where(column.notna(), "")
        columns[name] = column
    return pd.DataFrame(columns, copy=False)


def _parsed(text: bytes, delimiter: str, width: int, texts: set[int], raw: set[int], *, is_marked: bool) -> Any:
    """The text by pandas' parser: columns of `texts` and `raw` as objects, the others as it sees fit.

    Raises:
        NotPlain: it can't be parsed, because a row is too long or for another reason.
        UnicodeDecodeError: it isn't UTF-8.
    """
    import pandas as pd

    nulls: Any = [""]
    if is_marked:  # in columns that are not text, an empty text fits no more than an empty field does
        nulls = {at: [""] if at in texts else ["", _EMPTY_TEXT.decode()] for at in range(width)}
    exact: Any = {} if _reads_floats_exactly(pd.__version__) else {"float_precision": "round_trip"}
    try:
        return pd.read_csv(
            BytesIO(text), **exact, dtype=dict.fromkeys([*texts, *raw], object), na_values=nulls,
            sep=delimiter, header=None, names=range(width), index_col=False, engine="c",
            keep_default_na=False, low_memory=False, encoding="utf-8",
        )  # fmt: skip
    except UnicodeDecodeError:
        raise
    except (ValueError, OverflowError):  # of which the errors of pandas' parser are a kind
        raise NotPlain from None


def _reads_floats_exactly(release: str) -> bool:
    """Return whether pandas makes the nearest float of a text by itself; older releases often make the next one."""
    return tuple(map(int, release.split(".")[:2])) >= (3, 1)


def _may_have_odd_numbers(data: bytes, grammar: Grammar) -> bool:
    """Return whether a field may begin with a zero that another digit follows, or with a plus, or be -0."""
    import numpy as np

    text = np.frombuffer(data, dtype=np.uint8)
    zeros = np.flatnonzero(text[:-1] == ord("0"))
    follows = text[zeros + 1]
    before = np.where(zeros > 0, text[zeros - 1], ord("\n"))
    begins = np.isin(before, [*grammar.delimiter.encode(), *b'\n\r" \t'])
    has_digit = (follows >= ord("0")) & (follows <= ord("9"))
    return b"+" in data or bool(np.any(begins & has_digit)) or b"-0" in data


def _fits(column: Any, kind: Kind, *, is_strict: bool) -> bool:
    """Return whether the type that pandas has inferred for a column is the wanted one, or nearly."""
    code = column.dtype.kind
    if is_strict and kind["kind"] == "int":
        return bool(code == "i")  # of floats, nothing tells how they were written
    if is_strict:
        return "odd" not in kind and code in "if" and bool((column.dropna().abs() < 1 << 53).all())
    if kind["kind"] == "int" and code == "f":
        return bool((column.dropna().abs() < 1 << 53).all())
    return code in "if"


def _finished(column: Any, kind: Kind) -> Any:
    match kind["kind"]:
        case "int":
            return as_ints(column)
        case "float":
            return column.astype("float64")
        case "bool":
            return convert(as_objects(column), kind)
        case "datetime":
            return as_dates(column, kind)
        case _:
            return as_objects(column)


def _head(data: bytes, grammar: Grammar) -> str:
    """The beginning of the text, with the complete first record."""
    if grammar.multi_line:
        end = data.find(b"\n", data.find(b'"', 0, 1 << 16)) if b'"' in data[: 1 << 16] else data.find(b"\n", 2)
        while end >= 0 and data.count(b'"', 0, end) % 2:
            end = data.find(b"\n", end + 1)
    else:
        start = 0
        while data[start : start + 1] in (b"\n", b"\r"):
            start += 1
        end = data.find(b"\n", start)
    return (data if end < 0 else data[:end]).decode()


def _checked(data: bytes, grammar: Grammar) -> tuple[bytes, str]:
    """The bytes for pandas, and their delimiter, if pandas reads them as the grammar does.

    Raises:
        NotPlain: it doesn't, or may not.
    """
    if b"\0" in data or data.startswith(BYTE_ORDER_MARK):
        raise NotPlain
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        raise NotPlain
    mark = grammar.delimiter.encode()
    if len(mark) > 1:
        if _SEPARATOR in data or b'"' in data:
            raise NotPlain
        data, mark = data.replace(mark, _SEPARATOR), _SEPARATOR
    if b'"' in data:
        data = quotes_checked(data, mark, multi_line=grammar.multi_line)
    return data, mark.decode()


def quotes_checked(data: bytes, mark: bytes, *, multi_line: bool) -> bytes:
    """Return the bytes with empty quoted fields marked, if every quote is where the grammar allows it.

    In such text each quote with an even number, counted from 0, opens a field or is the second of two that stand for
    one; the next one closes what it has opened.
    """
    import numpy as np

    text = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(text == ord('"'))
    if len(quotes) % 2:
        raise NotPlain
    opening, closing = quotes[::2], quotes[1::2]
    before = np.where(opening > 0, text[opening - 1], ord("\n"))
    doubled = before == ord('"')
    if not np.all(doubled | (before == mark[0]) | (before == ord("\n"))):
        raise NotPlain
    if not multi_line:
        newlines = np.flatnonzero(text == ord("\n"))
        if np.any(np.searchsorted(quotes, newlines) % 2):
            raise NotPlain
    end = len(text)
    after = np.where(closing + 1 < end, text[np.minimum(closing + 1, end - 1)], ord("\n"))
    empty = (closing == opening + 1) & ~doubled & np.isin(after, [mark[0], ord("\n"), ord("\r")])
    if not empty.any():
        return data
    if _EMPTY_TEXT in data:
        raise NotPlain
    marked = text.copy()
    marked[opening[empty]] = marked[closing[empty]] = _EMPTY_TEXT[0]
    return marked.tobytes()
