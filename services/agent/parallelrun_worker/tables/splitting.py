"""Delimited text, record by record, for rows that are to be put into another order."""

from parallelrun_worker.tables.by_pandas import quotes_checked
from parallelrun_worker.tables.records import Grammar, NotPlain, Record


def split_records(data: bytes, grammar: Grammar) -> list[bytes]:
    """The records in `data`, UTF-8, each with a newline at its end, so that they may be put into any order.

    If a quote could reach into what follows, the records are rewritten with all their fields in quotes.

    Raises:
        UnicodeDecodeError: it isn't UTF-8.
    """
    lines = data.split(b"\n")
    if grammar.multi_line and b'"' in data:
        mark = grammar.delimiter.encode()
        try:
            if len(mark) > 1:
                raise NotPlain
            quotes_checked(data, mark, multi_line=True)
        except NotPlain:
            return [_quoted(record, grammar.delimiter) for record in grammar.records(data.decode())]
        lines = _whole(lines)
    return [line + b"\n" for line in lines if line and line != b"\r"]


def requoted_records(data: bytes, grammar: Grammar, other: Grammar) -> list[bytes]:
    """The records in `data`, as `split_records`, written with the delimiter of another grammar."""
    return [_quoted(record, other.delimiter) for record in grammar.records(data.decode())]


def row_begin(data: bytes, grammar: Grammar, row: int) -> int:
    """The position of a record in `data`, UTF-8, counted from 0 without empty lines; -1: there are not so many."""
    text, start = data.decode(), 0
    for end in grammar.ends(text, r"\n|\Z"):
        if text[start:end].strip("\r\n"):
            if not row:
                return len(text[:start].encode())
            row -= 1
        start = end
    return -1


def _whole(lines: list[bytes]) -> list[bytes]:
    """Lines that belong to one record, joined; every quote is where it belongs."""
    records: list[bytes] = []
    begun: list[bytes] = []
    is_open = False
    for line in lines:
        begun.append(line)
        is_open ^= bool(line.count(b'"') % 2)
        if not is_open:
            records.append(b"\n".join(begun))
            begun = []
    return records


def _quoted(record: Record, delimiter: str) -> bytes:
    fields = ["" if field is None else '"' + field.replace('"', '""') + '"' for field in record]
    return delimiter.join(fields).encode() + b"\n"
