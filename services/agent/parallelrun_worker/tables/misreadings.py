"""Delimited text that was probably meant otherwise than as its table reads it: nothing is guessed, a warning tells.

That is a text of one column with another delimiter in each line, one whose lines are objects of JSON, a web page, and a
text that was put together from several files, whose headers and byte order marks are between its rows.
"""

import json
import re
from collections.abc import Container
from itertools import islice
from typing import Any, NamedTuple

from parallelrun_worker.tables.byte_profile import ByteProfile, byte_profile_of
from parallelrun_worker.tables.data_warnings import DataWarning, DataWarnings
from parallelrun_worker.tables.heads import FileHead
from parallelrun_worker.tables.records import Grammar, Record
from parallelrun_worker.tables.schema import Schema, header_names
from parallelrun_worker.tables.sniffing import Encoding

_DELIMITERS = ",;\t|\x01"
_PAGES = ("<!doctype ", "<html", "<?xml")
_LOOKED_AT = 32 << 10
_LINES = 50
_FEWEST_LINES = 3
"""Of a text without a header, which have as many of another delimiter."""
_MARK = "\ufeff".encode()
_NUMBERS = ("int", "float", "datetime")
_NUMBER_WORDS = frozenset(["nan", "inf", "infinity"])
_MOST_NAMES = 5
_OTHER_ENDS = re.compile("[\x0b\x0c\x15\x1e\x85\u2028\u2029]")
"""Characters that end lines or records elsewhere, and are a part of the text here."""
_LONG_HEADER = 64
_WITHOUT_NAME = re.compile(r"Column\d+")


def warn_of_other_ends(warnings: DataWarnings, path: str, header: bytes, encoding: Encoding) -> None:
    """Warn if a file without a line end, all of which is its header, may have lines that end otherwise.

    Args:
        header: all that is in the file, in UTF-8.
    """
    text = header.decode()
    if other := _OTHER_ENDS.search(text):
        event = f"all of it is the header: it has no line ends, but {other[0]!r}"
    elif len(text) >= _LONG_HEADER and 2 * sum(character > "\x7f" for character in text) > len(text):
        event = f"all of it is the header: read as {encoding.name}, it has no line ends"
    else:
        return
    warnings.add(
        DataWarning("line_ends", path, "", event, "save it as UTF-8, with a newline behind each row", 1, "file")
    )


class Joint(NamedTuple):
    """The place in a text, put together from several files, where another one begins."""

    at: int
    """The position of the first such line."""
    times: int
    is_header: bool
    """True: the header stands there again. False: a record with a byte order mark before it."""


def warn_of_delimiter(warnings: DataWarnings, path: str, data: bytes, head: FileHead, rows: int) -> bool:
    """Warn if each line of a text is one field, and seems to have several; returns whether it does.

    Args:
        data: its records in UTF-8.
        head: of its file.
    """
    if not rows or (len(head.header) > 1 and not head.line.startswith((b"{", b"<"))):
        return False
    lines = _first_lines(data)
    if not head.line and not lines:  # rows of blanks and line ends alone
        return False
    first = head.line.decode() or lines[0]
    grammar = Grammar(head.delimiter, multi_line=False)
    if all(map(_is_object, [first, *lines[:2]])):
        event, remedy = "its lines are objects of JSON, and were read as delimited text", "read_json_lines"
    elif first.lower().startswith(_PAGES):
        event = "it is a web page or XML, and was read as delimited text: perhaps an answer in place of a download"
        remedy = "leave it out of the input, or fetch it again"
    elif len(next(grammar.records(first), [])) == 1 and (other := _other_delimiter(first, lines, head)):
        event = f"each of its lines was read as one field, and seems to have several, with {other!r} between them"
        remedy = f"delimiter: {json.dumps(other)}, an option of the read step"
    else:
        return False
    warnings.add(DataWarning("delimiter", path, "", event, remedy, rows, "row"))
    return True


def _first_lines(data: bytes) -> list[str]:
    text = data[:_LOOKED_AT].decode(errors="replace")
    lines = text.split("\n")
    whole = lines if len(data) <= _LOOKED_AT or len(lines) == 1 else lines[:-1]
    return [line for line in islice((line.rstrip("\r") for line in whole), _LINES) if line]


def _is_object(line: str) -> bool:
    if not line.startswith("{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _other_delimiter(first: str, lines: list[str], head: FileHead) -> str:
    """The delimiter of which nearly all lines have as many as the first one; empty: there is none."""
    for other in _DELIMITERS:
        if other == head.delimiter or other not in first:
            continue
        grammar = Grammar(other, multi_line=False)
        width = len(next(grammar.records(first), []))
        same = sum(len(next(grammar.records(line), [])) == width for line in lines)
        is_same = same > len(lines) / 2 if head.header else same == len(lines) >= _FEWEST_LINES
        if width > 1 and is_same:
            return other
    return ""


def joint_in(
    data: bytes,
    head: FileHead,
    schema: Schema,
    rows: Any,
    odd_columns: Container[str],
    *,
    byte_profile: ByteProfile | None,
) -> Joint | None:
    """Return where a header of its file is between the records of a text again, or a byte order mark before one.

    Args:
        rows: the same records as they were read. Where each value of a column is a number or a date, none is a header.
        odd_columns: those of which values were not kept.
        byte_profile: of this text; None: not known.
    """
    is_first_fixed = len(schema.names) > 0 and _is_fixed(schema, rows, 0, odd_columns)
    if is_first_fixed and not _may_be_number(schema.names[0]):
        return None
    with_mark = (
        [] if is_first_fixed or (byte_profile or byte_profile_of(data)).greatest < _MARK[0] else _starts(data, _MARK)
    )
    has_header = bool(head.line) and not any(
        _is_fixed(schema, rows, at, odd_columns) and not _may_be_number(name) for at, name in enumerate(schema.names)
    )
    headers = [at for at in _places(data, head.line) if _is_line(data, at, head.line)] if has_header else []
    first = min([*headers[:1], *with_mark[:1]], default=None)
    if first is None:
        return None
    before = len(_MARK) if data.startswith(_MARK, first) else 0
    is_header = bool(headers) and headers[0] == first + before
    return Joint(first, len({*headers, *(at + len(_MARK) for at in with_mark)}), is_header)


def _may_be_number(name: str) -> bool:
    return not name[:1].isalpha() or name.lower() in _NUMBER_WORDS


def _is_fixed(schema: Schema, rows: Any, at: int, odd_columns: Container[str]) -> bool:
    """Return whether each value of a column is a number, a date or null by its type."""
    if schema.kinds[at]["kind"] not in _NUMBERS or schema.names[at] in odd_columns:
        return False
    if hasattr(rows, "iloc"):
        return bool(rows[schema.names[at]].dtype.kind != "O")
    import pyarrow as pa

    kind = rows.schema[at].type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind))


def _places(data: bytes, part: bytes) -> list[int]:
    places, at = [], data.find(part)
    while at >= 0:
        places.append(at)
        at = data.find(part, at + len(part))
    return places


def _starts(data: bytes, part: bytes) -> list[int]:
    """The places where a line begins with this."""
    return [at for at in _places(data, part) if at == 0 or data[at - 1 : at] == b"\n"]


def _is_line(data: bytes, at: int, line: bytes) -> bool:
    before = at - len(_MARK) if data.startswith(_MARK, max(0, at - len(_MARK))) else at
    end = at + len(line)
    return (before == 0 or data[before - 1 : before] in (b"\n", b"\x1a")) and data[end : end + 1] in (b"\n", b"\r", b"")


def warning_of(joint: Joint, header: Record, file: str, line: int, offset: int) -> DataWarning:
    if joint.is_header:
        event = "its header is between its rows again, as where files were put together, and was read as a row"
        name = header_names(header)[-1]
        filtered = json.dumps(f"col({json.dumps(name)}) != {json.dumps(header[-1])}", ensure_ascii=False)
        remedy = f"the step filter: {filtered} leaves it out"
    else:
        event = (
            "a byte order mark is between its rows, as where files were put together, and was read as the beginning of "
            "a value"
        )
        remedy = "name the files one by one, or put them together without their marks"
    return DataWarning("joined", file, "", event, remedy, joint.times, "row", line, offset)


def warn_of_header(
    warnings: DataWarnings, path: str, header: Record, schema: Schema, rows: int, *, by_name: bool
) -> None:
    """Warn if the header of a file has other columns than the table, or has them in an order that isn't followed."""
    names = header_names(header)
    if not rows or schema.has_order_of(names):
        return
    header_set, schema_names = set(names), set(schema.names)
    missing = [name for name in schema.names if name not in header_set and not _WITHOUT_NAME.fullmatch(name)]
    others = [name for name in names if name not in schema_names]
    if by_name and not missing and not others:
        return
    if by_name:
        parts = [f"lacks {_listed(missing)}, which are null there"] if missing else []
        parts += [f"has {_listed(others)}, which the first files have not"] if others else []
        event, remedy = f"its header {' and '.join(parts)}", "header: no_header, if its first line is a row"
    else:
        event = (
            f"its header is {_listed(names)}, and its values were read as {_listed(schema.names)}, by their position"
        )
        remedy = "columns_by: name"
    warnings.add(DataWarning("header", path, "", event, remedy, rows, "row"))


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(repr, names[:_MOST_NAMES])) + more
