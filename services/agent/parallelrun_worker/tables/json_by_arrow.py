"""Lines of JSON to an Arrow table by pyarrow, which needs a tenth of the time of Python's own parser.

Its parser is as strict as Python's, with the types of the schema it infers nothing, and it refuses names that come
twice or are not in the schema. What it reads otherwise than line by line is left to the other parser: objects that
share a line or go on in the next one, empty lines, whole numbers that a float rounds, those beyond floats, and `-0`.
"""

from typing import Any

from parallelrun_worker.tables.arrow_arrays import with_null_for_nan
from parallelrun_worker.tables.arrow_columns import converted, may_be_inexact, texts_of_arrow
from parallelrun_worker.tables.assembling import frame_of
from parallelrun_worker.tables.inference import Kind
from parallelrun_worker.tables.records import NotPlain
from parallelrun_worker.tables.schema import Schema

_BLOCK_BYTES = 4 << 20
_LOOKED_AT_ONCE = 1 << 18
_OLDEST = 14
"""Major version of pyarrow; those before have not been compared with the other parser."""


def read_table(data: bytes, schema: Schema, *, has_objects: bool = False) -> Any:
    """The lines in `data`, UTF-8, as an Arrow table with the columns of the schema.

    A column without a type (`any`) has no values there, or those that Arrow has a type for.

    Args:
        has_objects: columns without a type may have values. Objects then have the names of all, which only Arrow wants.

    Raises:
        NotPlain: pyarrow would not read these bytes as the other parser does, or isn't installed.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise NotPlain from None
    if not schema.names or int(pa.__version__.partition(".")[0]) < _OLDEST or not _is_text_of_objects(data):
        raise NotPlain
    if schema.odd and not has_objects:  # a column had lists or objects, and will have more of them
        raise NotPlain
    types = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "string": pa.string()}
    fields = {
        name: types[kind["kind"]]
        for name, kind in zip(schema.names, schema.kinds, strict=True)
        if kind["kind"] in types
    }
    if len(fields) == len(schema.names):
        table = _parsed(data, fields)
    else:
        table = _with_inferred(data, fields, schema, has_objects=has_objects)
    if table.num_rows != _lines_of_objects(data) or has_changed_numbers(table, data):
        raise NotPlain
    return table


def has_changed_numbers(table: Any, data: bytes) -> bool:
    """Return whether a number of these lines may stand in their Arrow table as another one."""
    columns = table.columns
    is_inexact = any(map(may_be_inexact, columns)) or any(map(_has_infinity, columns))
    return is_inexact or (b"-0" in data and any(map(_has_negative_zero, columns)))


def _parsed(data: bytes, fields: dict[str, Any], *, infers: bool = False) -> Any:
    import pyarrow as pa
    import pyarrow.json as pyarrow_json

    try:
        return pyarrow_json.read_json(
            pa.BufferReader(data),
            read_options=pyarrow_json.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            parse_options=pyarrow_json.ParseOptions(
                explicit_schema=pa.schema(list(fields.items())),
                unexpected_field_behavior="infer" if infers else "error",
            ),
        )
    except pa.ArrowInvalid:
        raise NotPlain from None


def _with_inferred(data: bytes, fields: dict[str, Any], schema: Schema, *, has_objects: bool) -> Any:
    """The lines as a table in which columns without a type have the one that pyarrow finds."""
    import pyarrow as pa

    table = _parsed(data, fields, infers=True)
    types_of_others = {name: table.schema.field(name).type for name in table.column_names if name not in fields}
    if not types_of_others.keys() <= set(schema.names):  # other lines may not have it, so it is not in the schema
        raise NotPlain
    if any(not pa.types.is_null(type_) for type_ in types_of_others.values()) and not has_objects:
        schema.odd.update(
            schema.names.index(name) for name, type_ in types_of_others.items() if pa.types.is_nested(type_)
        )
        raise NotPlain
    types = {name: _without_times(type_) for name, type_ in types_of_others.items()}
    if types != types_of_others:
        table = _parsed(data, {**fields, **types})
    missing = [name for name in schema.names if name not in table.column_names]
    for name in missing:
        table = table.append_column(name, pa.nulls(len(table)))
    return table.select(schema.names)


def _without_times(type_: Any) -> Any:
    """A type that pyarrow has found, with texts in place of the times that it takes some of them for.

    Raises:
        NotPlain: of numbers with a point, some may be whole, and it has no way to say which.
    """
    import pyarrow as pa

    if pa.types.is_struct(type_):
        return pa.struct([(field.name, _without_times(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(_without_times(type_.value_type))
    if pa.types.is_timestamp(type_):
        return pa.string()
    if pa.types.is_floating(type_):
        raise NotPlain
    return type_


def frame_of_table(table: Any, schema: Schema, text_dtype: Any = None) -> Any:
    """Such a table as a DataFrame.

    Args:
        text_dtype: that of columns of texts; None: they are objects.
    """
    columns = [_column(column, kind, text_dtype) for column, kind in zip(table.columns, schema.kinds, strict=True)]
    return frame_of(schema.names, [column if _is_own(column) else column.copy() for column in columns])


def _column(column: Any, kind: Kind, text_dtype: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), None, dtype=object)
    return texts_of_arrow(column, text_dtype) if pa.types.is_string(column.type) else converted(column, kind)


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

    Between an object's own parts that look like both, there is a comma. What is looked at at once fits into a
    processor's cache.
    """
    import numpy as np

    text = np.frombuffer(data, dtype=np.uint8)
    last, count = len(text) - 1, 1
    for start in range(0, len(text), _LOOKED_AT_ONCE):
        ends = np.flatnonzero(text[start : start + _LOOKED_AT_ONCE] == ord("\n"))  # twice as fast as bytes.count
        ends += start
        if len(ends) and ends[-1] == last:
            ends = ends[:-1]
        before = text[ends - 1]
        if (before == ord("\r")).any():
            before = np.where(before == ord("\r"), text[ends - 2], before)
        if not ((before == ord("}")).all() and (text[ends + 1] == ord("{")).all()):
            return 0
        count += len(ends)
    return count


def _has_infinity(column: Any) -> bool:
    """Return whether a column of floats has what stands for a number that is larger than any float."""
    import numpy as np
    import pyarrow as pa

    return bool(pa.types.is_floating(column.type) and np.isinf(column.to_numpy()).any())


def _has_negative_zero(column: Any) -> bool:
    """Return whether a column of floats has a negative zero: `-0` is the whole number 0, and `-0.0` isn't."""
    import numpy as np
    import pyarrow as pa

    if not pa.types.is_floating(column.type):
        return False
    numbers = column.to_numpy()
    return bool(np.signbit(numbers[numbers == 0]).any())
