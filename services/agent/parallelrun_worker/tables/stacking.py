"""Arrow tables one below the other, of files that may disagree about their columns."""

from collections.abc import Sequence
from typing import Any

from parallelrun_worker.tables.arrow_arrays import array_of
from parallelrun_worker.tables.parquet_rows import is_text, to_frame
from parallelrun_worker.tables.together import together


def stacked(tables: Sequence[Any]) -> Any:
    """The rows of all tables, in order; a column is null where its table lacks it."""
    import pyarrow as pa

    full = [table for table in tables if len(table)] or tables[:1]
    if len(full) == 1:
        return full[0]
    try:
        return pa.concat_tables(full, promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        names = [*dict.fromkeys(name for table in full for name in table.column_names)]
        return pa.table([_column(full, name) for name in names], names=names)


def _column(tables: Sequence[Any], name: str) -> Any:
    """A column of all tables. Where they disagree about its type, it has a wider one, or what pandas makes of it."""
    import pyarrow as pa

    parts = [
        pa.table({name: table.column(name) if name in table.column_names else pa.nulls(len(table))}) for table in tables
    ]
    kinds = {_family(part.schema[0].type) for part in parts}
    try:
        return pa.concat_tables(parts, promote_options="default" if None in kinds or len(kinds) > 1 else "permissive")[
            name
        ]
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return array_of(together([to_frame(part, is_exact=True) for part in parts])[name], name=name)


def _family(type_: Any) -> str | None:
    """Return the same for types of which the wider one holds each value of the other; None: there is no such type."""
    import pyarrow as pa

    for name, is_one in (
        ("signed", pa.types.is_signed_integer), ("unsigned", pa.types.is_unsigned_integer),
        ("float", pa.types.is_floating), ("text", is_text),
    ):  # fmt: skip
        if is_one(type_):
            return name
    return None
