"""A Parquet file of segments that are streams of Arrow's IPC format.

Each mini-batch has the column types that its own values had. All schemas are looked at first: a column gets the type
that fits every mini-batch (integers and floats become floats, nothing at all becomes anything), or is text where there
is none. Then row groups are written, so no more than one of them and one mini-batch is in memory.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet

from parallelrun_concatenator.output import Output
from parallelrun_concatenator.parts import Parts
from parallelrun_concatenator.segments import Segment
from parallelrun_core.errors import CorruptLog

_GROUP_ROWS: Final = 1 << 17
_GROUP_BYTES: Final = 64 << 20
_HEAD: Final = 1 << 16
_CONFLICTS: Final = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)


class ParquetFile:
    """Looks at all schemas first, then writes the rows.

    Args:
        segments: all of them, in order.

    Raises:
        CorruptLog: a segment is not such a stream.
    """

    def __init__(self, segments: Iterable[Segment], parts: Parts) -> None:
        self.notes: list[str] = []
        self._types: dict[str, pa.DataType] = {}
        self._mixed: set[str] = set()
        seen: set[bytes] = set()
        for segment in segments:
            described = _described(segment, parts)
            if described not in seen:
                seen.add(described)
                self._add(_schema(segment, described))
        self._schema = pa.schema(list(self._types.items()))
        if self._mixed:
            names = ", ".join(sorted(self._mixed))
            self.notes.append(f"Mini-batches have values of different kinds in {names}; in the output they are text.")

    def _add(self, schema: pa.Schema) -> None:
        for field in schema:
            known = self._types.setdefault(field.name, field.type)
            if known == field.type:
                continue
            both = [pa.schema([(field.name, each)]) for each in (known, field.type)]
            try:
                found = pa.unify_schemas(both, promote_options="permissive").field(0).type
            except _CONFLICTS:
                found = pa.string()
                self._mixed.add(field.name)
            self._types[field.name] = found

    def assemble(self, segments: Iterable[Segment], parts: Parts, output: Output) -> None:
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

    def _table(self, segment: Segment, parts: Parts) -> pa.Table:
        """The rows of a segment, with the columns of the output."""
        data = parts.read(segment)
        try:
            found = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
            columns = [
                _cast(found.column(field.name), field.type)
                if field.name in found.schema.names
                else pa.nulls(found.num_rows, field.type)
                for field in self._schema
            ]
        except (pa.ArrowException, OSError) as error:
            raise CorruptLog(f"the rows of mini-batch {segment.mini_batch} are no Arrow stream: {error}") from error
        return pa.table(columns, schema=self._schema)


class _Sink(io.RawIOBase):
    """The output as pyarrow wants it; it is closed by whoever has opened it."""

    def __init__(self, output: Output) -> None:
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
    if column.type == to:
        return column
    try:
        return column.cast(to, safe=False)
    except _CONFLICTS:  # nested values have no text of Arrow's
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())


def _described(segment: Segment, parts: Parts) -> bytes:
    """The bytes of a stream up to the end of its schema."""
    begin = parts.begin(segment, _HEAD)
    # A message begins with four bytes of ones and the length of its metadata.
    end = 8 + int.from_bytes(begin[4:8], "little")
    return begin[:end] if end <= len(begin) else parts.begin(segment, end)


def _schema(segment: Segment, described: bytes) -> pa.Schema:
    try:
        return pa.ipc.read_schema(pa.py_buffer(described)).remove_metadata()
    except (pa.ArrowException, OSError) as error:
        raise CorruptLog(f"the rows of mini-batch {segment.mini_batch} are no Arrow stream: {error}") from error
