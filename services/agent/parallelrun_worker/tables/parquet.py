"""Ranges of rows of a Parquet file to a DataFrame, with no more in memory than the range and one batch."""

from base64 import b64decode
from typing import Any
from urllib.parse import unquote

from parallelrun_worker.tables.conversion import as_objects, convert
from parallelrun_worker.tables.inference import STRING, Kind

_BATCH_ROWS = 1 << 16
_NULL = "__HIVE_DEFAULT_PARTITION__"
_DATES: Kind = {"kind": "datetime", "formats": ["%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f"]}
_KINDS: dict[str, Kind] = {
    **{name: {"kind": "int"} for name in ("byte", "short", "integer", "long")},
    **{name: {"kind": "float"} for name in ("float", "double")},
    "boolean": {"kind": "bool"},
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), _DATES),
}


def read_rows(path: str, start: int, end: int, columns: list[str] | None) -> Any:
    """Rows `start` to `end` (-1: the last) of a file, as an Arrow table; all columns, or these.

    Raises:
        ImportError: pyarrow isn't installed.
        ValueError: it is not a Parquet file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        batches = list(_batches(file, start, end, columns))
        schema = file.schema_arrow
        if columns is not None:
            schema = pa.schema([field for field in schema if field.name in columns])
        return pa.Table.from_batches(batches, schema=schema)


def write_stream(table: Any) -> bytes:
    """Rows as an Arrow IPC stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def read_streams(data: bytes) -> Any:
    """The rows of consecutive Arrow IPC streams, as one Arrow table."""
    import pyarrow as pa

    tables = []
    with pa.BufferReader(data) as source:
        while source.tell() < len(data):
            tables.append(pa.ipc.open_stream(source).read_all())
    return pa.concat_tables(tables)


def to_frame(table: Any) -> Any:
    """An Arrow table as pandas 2 would have it: texts are objects, and their nulls are None."""
    frame = table.to_pandas(ignore_metadata=True)
    for name in frame.columns:
        if str(frame[name].dtype) in ("str", "string"):
            frame[name] = as_objects(frame[name])
    return frame


def with_missing(table: Any, read: dict[str, Any]) -> Any:
    """The rows of one file of a Delta table, with nulls in the columns that are newer than the file."""
    import pyarrow as pa

    if not read.get("schema"):  # a job of a release that did not record it
        return table
    for field in pa.ipc.read_schema(pa.py_buffer(b64decode(read["schema"]))):
        if field.name not in table.column_names and field.name not in read["partitions"]:
            table = table.append_column(field, pa.nulls(len(table), field.type))
    return table


def with_partitions(frame: Any, path: str, plan: dict[str, Any]) -> Any:
    """The rows of one file of a Delta table with its partition columns, whose values are in the path."""
    import pandas as pd

    below = path[len(plan["root"].rstrip("/")) + 1 :] if path.startswith(plan["root"]) else path
    parts = [part.partition("=") for part in below.split("/")[:-1]]
    texts = {unquote(name): None if value == _NULL else unquote(value) for name, equals, value in parts if equals}
    kinds = plan["read"]["partitions"]
    for name, kind in kinds.items():
        values = pd.Series([texts.get(name)] * len(frame), dtype=object)
        frame[name] = convert(values, _KINDS.get(kind, STRING))
    order = [name for name in plan["read"]["columns"] if name in frame.columns]
    return frame[order]


def names_of(path: str) -> list[str]:
    """The names of a file's columns."""
    import pyarrow.parquet as pq

    return list(pq.read_schema(path).names)


def _batches(file: Any, start: int, end: int, columns: list[str] | None) -> Any:
    first = 0
    for group in range(file.metadata.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        last = first + rows
        low, high = max(start, first) - first, (last if end < 0 else min(end, last)) - first
        if low < high:
            at = 0
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, row_groups=[group], columns=columns):
                begin, stop = max(low - at, 0), min(high - at, batch.num_rows)
                if begin < stop:
                    yield batch.slice(begin, stop - begin)
                at += batch.num_rows
                if at >= high:
                    break
        first = last
