"""Lines of JSON to an Arrow table by pyarrow, which needs a tenth of the time of Python's own parser.

Its parser is as strict as Python's, with the types of the schema it infers nothing, and it refuses names that come
twice or are not in the schema. What it reads otherwise than line by line is left to the other parser: objects that
share a line or go on in the next one, empty lines, whole numbers that a float rounds, and `-0`.
"""

from typing import Any

from parallelrun_worker.tables.arrow_arrays import with_null_for_nan
from parallelrun_worker.tables.arrow_columns import converted, may_be_inexact
from parallelrun_worker.tables.assembling import frame_of
from parallelrun_worker.tables.records import NotPlain
from parallelrun_worker.tables.schema import Schema

_BLOCK_BYTES = 4 << 20
_OLDEST = 14
"""Major version of pyarrow; those before have not been compared with the other parser."""


def read_table(data: bytes, schema: Schema) -> Any:
    """The lines in `data`, UTF-8, as an Arrow table with the columns of the schema.

    Raises:
        NotPlain: pyarrow would not read these bytes as the other parser does, or isn't installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.json as pyarrow_json
    except ImportError:
        raise NotPlain from None
    types = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "string": pa.string()}
    if not schema.names or any(kind["kind"] not in types for kind in schema.kinds):
        raise NotPlain
    if int(pa.__version__.partition(".")[0]) < _OLDEST or not _is_text_of_objects(data):
        raise NotPlain
    fields = [(name, types[kind["kind"]]) for name, kind in zip(schema.names, schema.kinds, strict=True)]
    try:
        table = pyarrow_json.read_json(
            pa.BufferReader(data),
            read_options=pyarrow_json.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            parse_options=pyarrow_json.ParseOptions(
                explicit_schema=pa.schema(fields), unexpected_field_behavior="error"
            ),
        )
    except pa.ArrowInvalid:
        raise NotPlain from None
    if table.num_rows != _lines_of_objects(data):
        raise NotPlain
    if any(may_be_inexact(column) or (b"-0" in data and _has_negative_zero(column)) for column in table.columns):
        raise NotPlain
    return table


def frame_of_table(table: Any, schema: Schema) -> Any:
    """Such a table as a DataFrame."""
    columns = [converted(column, kind) for column, kind in zip(table.columns, schema.kinds, strict=True)]
    return frame_of(schema.names, [column if _is_own(column) else column.copy() for column in columns])


def _is_own(column: Any) -> bool:
    flags = getattr(column, "flags", None)
    return getattr(flags, "writeable", True)


def with_nulls(table: Any) -> Any:
    """Such a table with nulls in place of NaN, as pandas has them."""
    import pyarrow as pa

    columns = [with_null_for_nan(each) if pa.types.is_floating(each.type) else each for each in table.columns]
    return pa.table(columns, names=table.column_names)


def _is_text_of_objects(data: bytes) -> bool:
    """Return whether a text is UTF-8, which pyarrow does not check, begins with an object and ends with one."""
    if not data.startswith(b"{") or not data[-3:].rstrip(b"\r\n").endswith(b"}"):
        return False
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _lines_of_objects(data: bytes) -> int:
    """The number of lines; 0 if a line doesn't begin or end like an object.

    Between an object's own parts that look like both, there is a comma.
    """
    import numpy as np

    text = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))  # twice as fast as bytes.count, and with the places
    inner = ends[:-1] if data.endswith(b"\n") else ends
    before = text[inner - 1]
    if b"\r" in data:
        before = np.where(before == ord("\r"), text[inner - 2], before)
    is_between = bool((before == ord("}")).all() and (text[inner + 1] == ord("{")).all())
    return len(inner) + 1 if is_between else 0


def _has_negative_zero(column: Any) -> bool:
    """Return whether a column of floats has a negative zero: `-0` is the whole number 0, and `-0.0` isn't."""
    import numpy as np
    import pyarrow as pa

    if not pa.types.is_floating(column.type):
        return False
    numbers = column.to_numpy()
    return bool(np.any((numbers == 0) & np.signbit(numbers)))
