"""Ranges of rows of a Parquet file to a DataFrame, with no more in memory than the range and one batch."""

from typing import Any

from parallelrun_worker.tables.conversion import as_objects

_BATCH_ROWS = 1 << 16


def read_rows(path: str, start: int, end: int, columns: list[str] | None) -> Any:
    """Rows `start` to `end` (-1: the last) of a file; all columns, or these.

    Raises:
        ImportError: there is no pyarrow.
        ValueError: it is no Parquet file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        batches = list(_batches(file, start, end, columns))
        schema = file.schema_arrow
        if columns is not None:
            schema = pa.schema([field for field in schema if field.name in columns])
        table = pa.Table.from_batches(batches, schema=schema)
    return to_frame(table)


def to_frame(table: Any) -> Any:
    """An Arrow table as pandas 2 would have it: texts are objects, and null is None there."""
    frame = table.to_pandas(ignore_metadata=True)
    for name in frame.columns:
        if str(frame[name].dtype) in ("str", "string"):
            frame[name] = as_objects(frame[name])
    return frame


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
