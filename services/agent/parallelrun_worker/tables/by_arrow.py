"""Delimited text to a DataFrame by pyarrow, whose parser has the grammar of records.py but for three things.

It takes a lone carriage return for the end of a record; it lets a quoted field go on behind a newline, also where the
table's may not; and it ends a quote that is never closed with the text. What has such things is left to others, and so
are records with more or fewer fields than there are columns.

Fields become text first, and then each column by itself what it is (arrow_columns.py).
"""

from typing import Any

from parallelrun_worker.tables.arrow_columns import converted
from parallelrun_worker.tables.records import Grammar, NotPlain
from parallelrun_worker.tables.schema import Schema

_BLOCK = 4 << 20


def read_delimited(data: bytes, schema: Schema, grammar: Grammar, *, empty_as_string: bool) -> Any:
    """The records in `data`, UTF-8, as a DataFrame.

    Raises:
        NotPlain: pyarrow would not see these bytes as the grammar does, or isn't there.
    """
    import numpy as np
    import pandas as pd

    table = _texts(data, len(schema.names), grammar)
    columns = {}
    for name, kind, texts in zip(schema.names, schema.kinds, table.columns, strict=True):
        filled = texts.fill_null("") if empty_as_string and kind["kind"] == "string" else texts
        values = converted(filled, kind)
        if isinstance(values, np.ndarray) and not values.flags.writeable:  # Arrow's own memory
            values = values.copy()
        columns[name] = pd.Series(values, copy=False)
    return pd.DataFrame(columns, copy=False)


def _texts(data: bytes, width: int, grammar: Grammar) -> Any:
    """All fields as an Arrow table of texts; an empty field is null, an empty quoted one isn't."""
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        raise NotPlain from None
    mark = grammar.delimiter.encode()
    if len(mark) != 1 or mark in b'"\r\n' or not width or not data:
        raise NotPlain
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        raise NotPlain
    names = [str(number) for number in range(width)]
    try:
        table = csv.read_csv(
            pa.BufferReader(data),
            read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK, column_names=names),
            parse_options=csv.ParseOptions(delimiter=mark.decode(), newlines_in_values=grammar.multi_line),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=[""],
                strings_can_be_null=True, quoted_strings_can_be_null=False,
            ),
        )  # fmt: skip
    except pa.ArrowInvalid:  # another number of fields, no records, or no UTF-8
        raise NotPlain from None
    if b'"' in data and (
        _is_open(data, table.columns[-1][-1].as_py(), mark)
        or (not grammar.multi_line and table.num_rows != _lines(data))
    ):
        raise NotPlain
    return table


def _is_open(data: bytes, last: str | None, mark: bytes) -> bool:
    """Whether the last field may be all that follows a quote which is never closed."""
    if last is None:
        return False
    field = b'"' + last.encode().replace(b'"', b'""')
    return data.endswith(field) and data[: -len(field)][-1:] in (mark, b"\n", b"")


def _lines(data: bytes) -> int:
    """How many lines there are that aren't empty, the last one without a newline included."""
    import numpy as np

    text = np.frombuffer(data, dtype=np.uint8)
    newline = text == ord("\n")
    empty = int(newline[0]) + np.count_nonzero(newline[1:] & newline[:-1])
    if b"\r" in data:
        is_return = text == ord("\r")
        empty += int(data.startswith(b"\r\n"))
        empty += np.count_nonzero(newline[2:] & is_return[1:-1] & newline[:-2])
    return int(np.count_nonzero(newline) - empty) + (not data.endswith(b"\n"))
