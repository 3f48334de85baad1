"""Types of the columns of a Parquet file, if every mini-batch has the types of its own values.

All schemas are checked first: a column gets the type that fits every mini-batch (integers and floats become floats,
nulls become anything), or is text if there is no such type, or Parquet lacks it (a struct without fields). If such a
type may not hold every value (a float holds no integer above 2^53 and few decimals, a timestamp in nanoseconds none
after 2262), the values are checked, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.parquet

from parallelrun_concatenator.parts import PartFiles
from parallelrun_concatenator.segments import Segment, SegmentTable
from parallelrun_core.errors import CorruptLog

CONFLICTS: Final = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)
_HEAD: Final = 1 << 16
_UNITS: Final = ("ns", "us", "ms", "s")


class ColumnTypes:
    """The types of a table's columns.

    Raises:
        CorruptLog: a segment is not an Arrow IPC stream.
    """

    def __init__(self, table: SegmentTable, parts: PartFiles) -> None:
        self._table, self._parts = table, parts
        schemas: dict[bytes, pa.Schema] = {}
        for segment in table.in_order():
            described = _described(segment, parts)
            if described not in schemas:
                schemas[described] = _schema(segment, described)
        kinds: dict[str, list[pa.DataType]] = {}
        for schema in schemas.values():
            for field in schema:
                kinds.setdefault(field.name, []).append(field.type)
        if schemas and not kinds:
            kinds["value"] = [pa.null()]  # a Parquet file without a column would have no rows either
        self._candidates = {name: _candidates(each) for name, each in kinds.items()}
        doubtful = {
            described: names for described, schema in schemas.items() if (names := self._doubtful_names(schema))
        }
        if doubtful:
            self._check_values(doubtful)
        self.mixed = sorted(name for name, candidates in self._candidates.items() if not candidates)
        """Columns that are text, because no type fits all mini-batches."""
        self.schema = pa.schema(
            [(name, candidates[0] if candidates else pa.string()) for name, candidates in self._candidates.items()]
        )

    def _doubtful_names(self, schema: pa.Schema) -> list[str]:
        return [
            field.name
            for field in schema
            if not all(_always_fits(field.type, each) for each in self._candidates[field.name])
        ]

    def _check_values(self, doubtful: dict[bytes, list[str]]) -> None:
        for segment in self._table.in_order():
            names = doubtful.get(_described(segment, self._parts), [])
            if any(self._candidates[name] for name in names):
                rows = read_rows(segment, self._parts)
                for name in names:
                    candidates = self._candidates[name]
                    self._candidates[name] = [each for each in candidates if _fits(rows.column(name), each)]


def read_rows(segment: Segment, parts: PartFiles) -> pa.Table:
    """The rows of a segment, with the types that they have there. A table without columns has no rows, either.

    Raises:
        CorruptLog: they are not what was committed, not as many as was decided, or not an Arrow IPC stream.
    """
    data = parts.read(segment)
    try:
        rows = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
    except (pa.ArrowException, OSError) as error:
        raise _not_a_stream(segment, error) from error
    if rows.num_columns and rows.num_rows != segment.rows:
        raise CorruptLog(
            f"mini-batch {segment.mini_batch} has {rows.num_rows:,} rows in parts/{segment.part}, but "
            f"{segment.rows:,} by its decision"
        )
    return rows


def _candidates(kinds: list[pa.DataType]) -> list[pa.DataType]:
    """Return what may fit all of these, the best one first."""
    best = kinds[0]
    for kind in kinds[1:]:
        if kind != best:
            both = [pa.schema([("", each)]) for each in (best, kind)]
            try:
                best = pa.unify_schemas(both, promote_options="permissive").field(0).type
            except CONFLICTS:
                return []
    if pa.types.is_timestamp(best):
        return [pa.timestamp(unit, best.tz) for unit in _coarser(best, kinds)]
    if pa.types.is_duration(best):
        return [pa.duration(unit) for unit in _coarser(best, kinds)]
    return [best] if _is_storable(best) else []


def _is_storable(kind: pa.DataType) -> bool:
    """Return whether Parquet has such a type."""
    try:
        pyarrow.parquet.write_table(pa.table({"": pa.nulls(1, kind)}), pa.BufferOutputStream())
    except CONFLICTS:
        return False
    return True


def _coarser(best: pa.DataType, kinds: list[pa.DataType]) -> tuple[str, ...]:
    """The units from the finest to the coarsest: what is out of range for one may be in range for another."""
    last = max(_UNITS.index(kind.unit) for kind in kinds if not pa.types.is_null(kind))
    return _UNITS[_UNITS.index(best.unit) : last + 1]


def _always_fits(kind: pa.DataType, to: pa.DataType) -> bool:
    """Return whether it is certain, without checking the values, that none can be lost."""
    types = pa.types
    if kind == to or types.is_null(kind):
        return True
    if types.is_integer(kind) and types.is_integer(to):
        signed, to_signed = types.is_signed_integer(kind), types.is_signed_integer(to)
        return bool(to_signed >= signed and to.bit_width - to_signed >= kind.bit_width - signed)
    if types.is_integer(kind) and types.is_floating(to):
        return bool(2 * kind.bit_width <= to.bit_width)
    if types.is_string(kind) and types.is_large_string(to):
        return True
    return bool(types.is_floating(kind) and types.is_floating(to) and to.bit_width >= kind.bit_width)


def _fits(column: pa.ChunkedArray, to: pa.DataType) -> bool:
    """Return whether each value can have a type that was found for several, without becoming another one."""
    if _count(column.type, _is_text) > _count(to, _is_text):  # Arrow makes bytes of texts
        return False
    try:
        converted = column.cast(to)
        # Arrow doesn't report lost digits of decimals.
        return not _count(column.type, pa.types.is_decimal) or bool(converted.cast(column.type).equals(column))
    except CONFLICTS:
        return False


def _count(kind: pa.DataType, is_one: Callable[[pa.DataType], bool]) -> int:
    """Return how many parts of a type, at any depth, are such."""
    parts = [kind.field(number).type for number in range(kind.num_fields)]
    return sum(_count(part, is_one) for part in parts) if parts else int(is_one(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _described(segment: Segment, parts: PartFiles) -> bytes:
    """The bytes of a stream up to the end of its schema."""
    begin = parts.begin(segment, _HEAD)
    # A message begins with four bytes of ones and the length of its metadata.
    end = 8 + int.from_bytes(begin[4:8], "little")
    return begin[:end] if end <= len(begin) else parts.begin(segment, end)


def _schema(segment: Segment, described: bytes) -> pa.Schema:
    try:
        return pa.ipc.read_schema(pa.py_buffer(described)).remove_metadata()
    except (pa.ArrowException, OSError) as error:
        raise _not_a_stream(segment, error) from error


def _not_a_stream(segment: Segment, error: Exception) -> CorruptLog:
    return CorruptLog(f"the rows of mini-batch {segment.mini_batch} are not an Arrow stream: {error}")
