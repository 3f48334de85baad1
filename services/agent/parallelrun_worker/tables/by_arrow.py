"""Delimited text to a DataFrame by pyarrow, whose parser follows the grammar of records.py with four exceptions.

It takes a lone carriage return for the end of a record; it lets a quoted field go on after a newline even if the
table's fields may not; it ends a quote that is never closed with the text; and it takes an empty field at the end of
the text for quoted when the one before is. Texts with any of these are left to the other parsers, and so are records
with more or fewer fields than there are columns.

A column gets its type at once if all of its values have the form that Arrow expects. Otherwise, or if Arrow accepts
values that a table may not have, it becomes text first (arrow_columns.py).
"""

import re
from collections.abc import Iterator
from typing import Any

from parallelrun_worker.tables.arrow_arrays import kept_in_arrow
from parallelrun_worker.tables.arrow_columns import (
    converted,
    has_nan,
    may_be_inexact,
    may_have_odd_ints,
    may_hold_newlines,
)
from parallelrun_worker.tables.arrow_types import is_text, text_type_of, truth_words, type_of
from parallelrun_worker.tables.assembling import frame_of
from parallelrun_worker.tables.inference import Kind
from parallelrun_worker.tables.line_ends import has_lone_returns
from parallelrun_worker.tables.records import BYTE_ORDER_MARK, Grammar, NotPlain
from parallelrun_worker.tables.schema import Schema
from parallelrun_worker.tables.values import ColumnValues, Values

BLOCK_BYTES = 2 << 20
WIDE = 512
"""Columns from which on what is done once for each column costs more than what is done for each byte."""
_MOST_MISFITS = 8
"""After so many columns with a value that doesn't fit, each of which takes another parse, all are read as text."""
_OLDEST = 14
"""Major version of pyarrow; those before lack some of what is used here."""
_OTHER_NAN = re.compile(rb"(?!nan|NaN)[nN][aA][nN]|[nN][aA][nN]\(")
"""What Arrow takes for a float that is no number, as the grammar doesn't."""
_CONVERSION = re.compile(r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error")


def read_delimited(
    data: bytes, schema: Schema, grammar: Grammar, *, empty_as_string: bool, values: Values | None = None
) -> Any:
    """The records in `data`, UTF-8, as a DataFrame; `values` as in parsers.py.

    Raises:
        NotPlain: pyarrow would not read these bytes as the grammar does, or isn't installed.
    """
    import numpy as np

    columns = []
    for column, kind, column_values in _filled(data, schema, grammar, values, empty_as_string=empty_as_string):
        read = converted(column, kind, column_values)
        if isinstance(read, np.ndarray) and not read.flags.writeable:  # Arrow's own memory
            read = read.copy()
        columns.append(read)
    return frame_of(schema.names, columns)


def read_table(
    data: bytes, schema: Schema, grammar: Grammar, *, empty_as_string: bool, values: Values | None = None
) -> Any:
    """The records in `data` as an Arrow table; arguments and errors are those of `read_delimited`."""
    import pyarrow as pa

    filled = _filled(data, schema, grammar, values, empty_as_string=empty_as_string)
    return pa.table([kept_in_arrow(*each) for each in filled], names=schema.names)


def _filled(
    data: bytes, schema: Schema, grammar: Grammar, values: Values | None, *, empty_as_string: bool
) -> Iterator[tuple[Any, Kind, ColumnValues | None]]:
    """The columns of the records, each with its kind and its rules."""
    table = _columns(data, schema, grammar, values)
    if values is not None and values.may_hold_newlines and grammar.multi_line:
        values.may_hold_newlines = any(map(may_hold_newlines, table.columns))
    for name, kind, column in zip(schema.names, schema.kinds, table.columns, strict=True):
        filled = column.fill_null("") if empty_as_string and kind["kind"] == "string" else column
        yield filled, kind, values.of_column(name, kind) if values is not None else None


def _columns(data: bytes, schema: Schema, grammar: Grammar, values: Values | None) -> Any:
    """An Arrow table of the records; an empty field is null, an empty quoted one isn't.

    A column in which something doesn't fit its type is read as text, from then on at once.

    Args:
        values: with these rules, a number that a float may not have exactly doesn't fit, nor does another word than
            true or false.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise NotPlain from None
    mark = grammar.delimiter.encode()
    if int(pa.__version__.partition(".")[0]) < _OLDEST or len(mark) != 1 or mark in b'"\r\n':
        raise NotPlain
    if not schema.names or not data or data.endswith(mark) or data.startswith(BYTE_ORDER_MARK):
        raise NotPlain
    byte_profile = values.byte_profile if values is not None else None
    if (byte_profile is None or byte_profile.has_returns) and has_lone_returns(data):
        raise NotPlain
    is_wide = values is not None and len(schema.names) >= WIDE
    has_plain_ints = is_wide and not may_have_odd_ints(data, mark)
    misfits = 0
    while True:
        try:
            table = _parsed(data, schema, grammar, values, has_plain_ints=has_plain_ints)
            inexact = [] if values is None else _inexact(table, data)
            if not inexact:
                break
            schema.odd.update(inexact)
        except pa.ArrowInvalid as error:
            odd = _CONVERSION.search(str(error))
            if odd is None:  # another number of fields, no records, or not UTF-8
                raise NotPlain from None
            if int(odd[1]) in schema.odd:
                raise NotPlain from None
            schema.odd.add(int(odd[1]))
            misfits += 1
            if misfits > _MOST_MISFITS:
                schema.odd.update(range(len(schema.names)))
    if not table.num_rows:  # nothing but empty lines; Arrow's columns may then have no chunk
        raise NotPlain
    if b'"' in data and not _is_sound(data, table, grammar):
        raise NotPlain
    return table


def _inexact(table: Any, data: bytes) -> list[int]:
    """The columns of floats that may not have what stands in the text."""
    inexact = [at for at, column in enumerate(table.columns) if may_be_inexact(column)]
    if not any(mark in data for mark in (b"N", b"A", b"(")):  # without which NaN has no other spelling
        return inexact
    with_nan = [at for at, column in enumerate(table.columns) if has_nan(column)]
    return [*inexact, *(with_nan if with_nan and _OTHER_NAN.search(data) else [])]


def _parsed(data: bytes, schema: Schema, grammar: Grammar, values: Values | None, *, has_plain_ints: bool) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    names = [str(number) for number in range(len(schema.names))]
    block_bytes = BLOCK_BYTES * max(1, len(names) // WIDE)  # each is a chunk of each column
    words = truth_words(schema.kinds, values)
    byte_profile = values.byte_profile if values is not None else None
    is_ascii = byte_profile.is_ascii if byte_profile is not None else data.isascii()
    types = [
        text_type_of(kind, values) if at in schema.odd else type_of(kind, words, values, has_plain_ints=has_plain_ints)
        for at, kind in enumerate(schema.kinds)
    ]
    return csv.read_csv(
        pa.BufferReader(data),
        read_options=csv.ReadOptions(use_threads=False, block_size=block_bytes, column_names=names),
        parse_options=csv.ParseOptions(delimiter=grammar.delimiter, newlines_in_values=grammar.multi_line),
        convert_options=csv.ConvertOptions(
            column_types=dict(zip(names, types, strict=True)),
            null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
            true_values=words.true, false_values=words.false,
            check_utf8=not is_ascii,  # looking at each text takes a tenth of the whole parse
        ),
    )  # fmt: skip


def _is_sound(data: bytes, table: Any, grammar: Grammar) -> bool:
    """Return whether no quoted field has taken in too much: what follows its line, or all to the end."""
    quote = b'"'
    last = table.columns[-1]
    if is_text(last.type):
        value = last[-1].as_py()
        field = None if value is None else quote + value.encode().replace(quote, quote * 2)
        may_be_open = field is not None and data.endswith(field)
        opened_at = len(data) - len(field or b"")
    else:  # a number, a word or a date, which has no quote in it
        may_be_open, opened_at = True, data.rfind(quote)
    if may_be_open and data[max(opened_at - 1, 0) : opened_at] in (grammar.delimiter.encode(), b"\n", b""):
        return False
    return grammar.multi_line or not any(map(may_hold_newlines, table.columns)) or table.num_rows in _lines(data)


def _lines(data: bytes) -> Iterator[int]:
    """The number of lines, then the number of those that aren't empty; both count a last line without a newline."""
    import numpy as np

    text = np.frombuffer(data, dtype=np.uint8)
    lines = int(np.count_nonzero(text == ord("\n"))) + (not data.endswith(b"\n"))
    yield lines
    newline = text == ord("\n")
    empty = int(newline[0]) + np.count_nonzero(newline[1:] & newline[:-1])
    if b"\r" in data:
        is_return = text == ord("\r")
        empty += int(data.startswith(b"\r\n"))
        empty += np.count_nonzero(newline[2:] & is_return[1:-1] & newline[:-2])
    yield int(lines - empty)
