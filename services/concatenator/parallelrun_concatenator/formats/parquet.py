"""A Parquet file of segments that are Arrow IPC streams.

Row groups are written as mini-batches come, so no more than one of them and one mini-batch is in memory.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet

from parallelrun_concatenator.column_types import CONFLICTS, ColumnTypes, read_rows
from parallelrun_concatenator.merge import Assembler
from parallelrun_concatenator.output import BlockWriter
from parallelrun_concatenator.parts import PartFiles
from parallelrun_concatenator.segments import Segment, SegmentTable
from parallelrun_core.spec import JobSpec

_GROUP_ROWS: Final = 1 << 17
_GROUP_BYTES: Final = 64 << 20


def assembler(_spec: JobSpec, table: SegmentTable, parts: PartFiles) -> Assembler:
    """The assembler of a job's Parquet file.

    Raises:
        InvalidInput: the rows can't be put into one.
        OSError: a part can't be read.
    """
    return ParquetFile(table, parts)


class ParquetFile:
    """Reads all schemas first, then writes the rows.

    Raises:
        CorruptLog: a segment is not such a stream.
    """

    def __init__(self, table: SegmentTable, parts: PartFiles) -> None:
        self.notes: list[str] = []
        columns = ColumnTypes(table, parts)
        self._schema = columns.schema
        if columns.mixed:
            names = ", ".join(columns.mixed)
            self.notes.append(
                f"Parquet has no type for all values that mini-batches have in {names}; in the output they are text."
            )

    def assemble(self, segments: Iterable[Segment], parts: PartFiles, output: BlockWriter) -> None:
        """Write the rows, group by group."""
        waiting: list[pa.Table] = []
        rows = size = 0
        with pyarrow.parquet.ParquetWriter(_Sink(output), self._schema) as writer:
            for segment in segments:
                table = self._table(segment, parts)
                waiting.append(table)
                rows += table.num_rows
                size += table.nbytes
                if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
                    _write_group(writer, waiting)
                    waiting, rows, size = [], 0, 0
            if waiting:
                _write_group(writer, waiting)

    def _table(self, segment: Segment, parts: PartFiles) -> pa.Table:
        """The rows of a segment, with the columns of the output."""
        rows = read_rows(segment, parts)
        columns = [
            _cast(rows.column(field.name), field.type)
            if field.name in rows.schema.names
            else pa.nulls(segment.rows, field.type)
            for field in self._schema
        ]
        return pa.table(columns, schema=self._schema)


class _Sink(io.RawIOBase):
    """The output as pyarrow wants it; it is closed by whoever has opened it."""

    def __init__(self, output: BlockWriter) -> None:
        super().__init__()
        self._output = output

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._output.write(data)

    def tell(self) -> int:
        return self._output.size


def _write_group(writer: Any, waiting: list[pa.Table]) -> None:
    table = pa.concat_tables(waiting)
    writer.write_table(table, row_group_size=max(1, table.num_rows))


def _cast(column: Any, to: pa.DataType) -> Any:
    """The column in a type that holds its values, as `ColumnTypes` has seen."""
    if column.type == to:
        return column
    try:
        if to != pa.string() or not _is_of_bytes(column.type):
            return column.cast(to)
    except CONFLICTS:
        if to != pa.string():
            raise
    # Arrow can't cast nested values to text.
    return pa.array([None if value is None else str(value) for value in column.to_pylist()], to)


def _is_of_bytes(kind: pa.DataType) -> bool:
    """Return whether values are bytes, or something that is stored as such: Arrow's text of these is the bytes."""
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return any(is_one(kind) for is_one in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary))
