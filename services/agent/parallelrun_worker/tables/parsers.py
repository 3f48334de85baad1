"""Delimited text to a DataFrame: by the fastest parser that reads it as the grammar of records.py does.

That is pyarrow's if each record has a field for each column; else, and without pyarrow, that of pandas if the text is
plain; else the grammar itself. All three give the same values in columns of the same types.
"""

from typing import Any

from parallelrun_worker.tables import by_arrow, by_pandas
from parallelrun_worker.tables.conversion import convert
from parallelrun_worker.tables.records import Grammar, NotPlain, Record
from parallelrun_worker.tables.schema import Schema
from parallelrun_worker.tables.values import Values


def read_delimited(
    data: bytes, schema: Schema, grammar: Grammar, *, empty_as_string: bool = False, values: Values | None = None
) -> Any:
    """The records in `data`, UTF-8, as a DataFrame.

    Args:
        values: how those are read that are odd for their column; None: as earlier releases did, in silence.

    Raises:
        UnicodeDecodeError: it isn't UTF-8.
        BadValue: one doesn't fit its column, and the table refuses it.
    """
    for read in (by_arrow.read_delimited, by_pandas.read_delimited):
        try:
            return read(data, schema, grammar, empty_as_string=empty_as_string, values=values)
        except NotPlain:
            if values is not None:
                values.may_be_ragged = True
    if values is not None:
        values.is_unusual = True
    return read_exactly(data.decode(), schema, grammar, empty_as_string=empty_as_string, values=values)


def read_exactly(
    text: str, schema: Schema, grammar: Grammar, *, empty_as_string: bool, values: Values | None = None
) -> Any:
    """Read text by the grammar, whatever it is like."""
    import pandas as pd

    rows = list(grammar.records(text))
    schema = schema.widened(max(map(len, rows), default=0))
    width = len(schema.names)
    missing: Record = [None] * width
    columns = list(zip(*(row + missing[len(row) :] for row in rows), strict=True)) or [()] * width
    series = {}
    for name, kind, texts in zip(schema.names, schema.kinds, columns, strict=True):
        if values is None:
            column = convert(pd.Series(texts, dtype=object), kind)
        else:
            column = values.of_column(name, kind).column(texts)
        series[name] = column.where(column.notna(), "") if empty_as_string and kind["kind"] == "string" else column
    return pd.DataFrame(series)
