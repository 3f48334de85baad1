"""Rows of delimited text with more fields than the header of their file, or with fewer: a warning tells of them.

What is beyond the header is in columns without a name, and what a row lacks is null. Either may mean that
fields begin and end elsewhere than the table thinks, as in text whose quotes have backslashes before them.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from parallelrun_worker.plurals import counted
from parallelrun_worker.tables.data_warnings import DataWarning
from parallelrun_worker.tables.records import Grammar, Record


class RaggedRows(NamedTuple):
    """The rows of a text that are longer than the header, or those that are shorter."""

    kind: str
    """`long_rows` or `short_rows`."""
    first: int
    """The number of the first of them, counted from 0 without empty lines."""
    fields: int
    """The number of its fields."""
    header_fields: int
    times: int
    remedy: str


def ragged_rows(data: bytes, header_fields: int, grammar: Grammar) -> Iterator[RaggedRows]:
    """Yield what is known of the longer rows of a text, and of the shorter ones, where there are such.

    Rows that go beyond the header with nothing but empty fields don't count: a delimiter at the end of each line means
    no value.

    Args:
        data: records in UTF-8.
    """
    lengths = list(_lengths(data, header_fields, grammar))
    longer = [(row, length) for row, length in lengths if length > header_fields]
    shorter = [(row, length) for row, length in lengths if length < header_fields]
    if longer:
        remedy = (
            "write a quote within quotes twice: a backslash before it says nothing in CSV"
            if b'\\"' in data
            else "put values that hold the delimiter in quotes, or name another delimiter"
        )
        yield RaggedRows("long_rows", longer[0][0], longer[0][1], header_fields, len(longer), remedy)
    if shorter:
        is_broken = b'"' in data and not grammar.multi_line
        remedy = (
            "support_multi_line: true, if values in quotes hold line ends" if is_broken else "write all their fields"
        )
        yield RaggedRows("short_rows", shorter[0][0], shorter[0][1], header_fields, len(shorter), remedy)


def _lengths(data: bytes, header_fields: int, grammar: Grammar) -> Iterator[tuple[int, int]]:
    """Each row of another length than the header, with its number of fields."""
    mark = grammar.delimiter.encode()
    records: Iterable[tuple[int, Record]]
    if b'"' in data:
        records = enumerate(grammar.records(data.decode()))
    else:  # a twentieth of the time that the grammar takes for all of them
        rows = enumerate(line for line in data.split(b"\n") if line.rstrip(b"\r"))
        odd = ((row, line) for row, line in rows if line.count(mark) != header_fields - 1)
        records = ((row, next(grammar.records(line.decode()), [])) for row, line in odd)
    for row, record in records:
        if len(record) != header_fields and not (len(record) > header_fields and not any(record[header_fields:])):
            yield row, len(record)


def warning_of(ragged: RaggedRows, file: str, line: int, offset: int) -> DataWarning:
    became = (
        "those beyond the header are in columns without a name" if ragged.kind == "long_rows" else "others are null"
    )
    event = f"a row has {counted(ragged.fields, 'field')} where the header has {ragged.header_fields:,}: {became}"
    return DataWarning(ragged.kind, file, "", event, ragged.remedy, ragged.times, "row", line, offset)
