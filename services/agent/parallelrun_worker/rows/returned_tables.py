"""Tables of Arrow and Polars that run() returns, as what the writers of rows know."""

from __future__ import annotations

from typing import Any


def as_rows(returned: Any) -> Any:
    """Return a DataFrame for a table of pyarrow or Polars, a list for one of their columns, and all else as it is.

    Whole numbers beside nulls stay whole numbers.
    """
    library = type(returned).__module__.partition(".")[0]
    if library == "polars" and hasattr(returned, "to_arrow"):
        returned, library = returned.to_arrow(), "pyarrow"
    if library != "pyarrow":
        return returned
    if hasattr(returned, "column_names"):
        return _frame_of(returned)
    return returned.to_pylist() if hasattr(returned, "to_pylist") and hasattr(returned, "type") else returned


def _frame_of(table: Any) -> Any:
    import pyarrow as pa

    from parallelrun_worker.tables.parquet_rows import nullable, to_frame

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    frame = to_frame(table, is_exact=True)
    for place, column in enumerate(table.columns):
        if column.null_count and pa.types.is_integer(column.type):
            frame.isetitem(place, nullable(column))
    return frame
