"""Avro files by the library fastavro: columns have the types of the schema, in every mini-batch the same.

A whole number beside a null is a float where that is exact, as in all tables. Dates, times, decimals, lists, maps and
records are Python's own objects, and UUIDs are texts.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import chain, islice
from typing import Any, BinaryIO

from parallelrun_worker.tables.elsewhere import read_range
from parallelrun_worker.tables.table_format import Piece, Records, TableFormat
from parallelrun_worker.tables.text_dtype import put_text_dtype
from parallelrun_worker.tables.values import int_column

_MOST_HEADERS = 100
_UUID = "string-uuid"
_DTYPES = {
    "int": "int32", "long": "int64", "float": "float32", "double": "float64", "boolean": "bool",
    "long-timestamp-millis": "datetime64[ms, UTC]", "long-timestamp-micros": "datetime64[us, UTC]",
    "long-local-timestamp-millis": "datetime64[ms]", "long-local-timestamp-micros": "datetime64[us]",
}  # fmt: skip
"""Of columns whose values are no objects of Python, by their type in the schema."""
_DTYPES_WITH_NULLS = {"int32": "float64", "int64": "float64", "bool": "object"}
_TEXTS = ("string", "enum", _UUID)
_OBJECTS = ("int-date", "int-time-millis", "long-time-micros", _UUID)
"""The others whose values are not those of the plain type."""

Row = dict[str, Any]


class AvroFormat(TableFormat):
    """A piece is a range of blocks, or some of the rows in it."""

    suffixes = (".avro",)

    def __init__(self, plan: dict[str, Any], schema_path: str) -> None:
        super().__init__(plan, schema_path)
        self._schema: dict[str, Any] = json.loads(self.options["schema"] or '{"fields": []}')
        self._kinds = {field["name"]: _kind(field["type"]) for field in self._schema["fields"]}
        self._headers: dict[str, bytes] = {}

    @staticmethod
    def read_file(path: str) -> Any:
        import fastavro
        import pandas as pd

        with open(path, "rb") as file, _explaining():
            reader = fastavro.reader(file)
            schema: Any = reader.writer_schema
            names = [field["name"] for field in schema["fields"]]
            return pd.DataFrame(list(reader), columns=names)

    def names(self) -> list[str]:
        return list(self._kinds)

    def frame(self, piece: Piece) -> Any:
        with _explaining():
            return self.frame_of(_own(piece, chain.from_iterable(self._blocks(piece))))

    def records(self, piece: Piece) -> Records:
        with _explaining():
            return AvroRecords(self, _own(piece, chain.from_iterable(map(self._encoded, self._blocks(piece)))))

    def frame_of_stored(self, data: bytes, path: str, header: list[str | None]) -> Any:
        return self.frame_of([row for row, _ in self._decoded(data)])

    def frame_of(self, rows: list[Row]) -> Any:
        import pandas as pd

        is_exact = bool(self.options.get("has_exact_integers"))
        columns = {
            name: _column([row[name] for row in rows], kind, is_exact=is_exact) for name, kind in self._kinds.items()
        }
        frame = pd.DataFrame(columns, index=range(len(rows)))
        put_text_dtype(frame, (name for name, kind in self._kinds.items() if kind in _TEXTS), self.text_dtype)
        return frame

    def _blocks(self, piece: Piece) -> Iterable[Any]:
        import fastavro

        path, start, end = piece[:3]
        with self.open(path, "rb") as file:
            header = self._header(path, file)
            data = read_range(file, max(start, len(header)), end if end >= 0 else file.seek(0, 2))
        return fastavro.block_reader(BytesIO(header + data))

    def _header(self, path: str, file: BinaryIO) -> bytes:
        import fastavro

        if path not in self._headers:
            if len(self._headers) >= _MOST_HEADERS:
                self._headers.clear()
            fastavro.block_reader(file)
            self._headers[path] = read_range(file, 0, file.tell())
        return self._headers[path]

    def _encoded(self, block: Any) -> Iterator[tuple[Row, bytes]]:
        return self._decoded(block.bytes_.read())

    def _decoded(self, data: bytes) -> Iterator[tuple[Row, bytes]]:
        """The rows in these bytes of a block or of several, each with its own bytes."""
        import fastavro

        schema = fastavro.parse_schema(self._schema)
        file = BytesIO(data)
        start = 0
        while start < len(data):
            row: Any = fastavro.schemaless_reader(file, schema, None)
            end = file.tell()
            yield row, data[start:end]
            start = end


class _Changed(ValueError):
    """The file is not the one that was cut."""


class AvroRecords(Records):
    """Rows with the bytes that they have in the file."""

    def __init__(self, owner: AvroFormat, rows: list[tuple[Row, bytes]]) -> None:
        self.header = []
        self._owner = owner
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def frame(self, indices: list[int] | None = None) -> Any:
        rows = self._rows if indices is None else [self._rows[at] for at in indices]
        return self._owner.frame_of([row for row, _ in rows])

    def stored(self, indices: list[int], keys: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        return keys, [self._rows[at][1] for at in indices]


def _own(piece: Piece, rows: Iterable[Any]) -> list[Any]:
    """Return those of a range's rows that belong to a piece."""
    left_out, count = piece[5:7] or (0, -1)
    own_rows = list(islice(rows, left_out, None if count < 0 else left_out + count))
    if len(own_rows) < count:
        raise _Changed("it has fewer rows than when it was cut: it was changed while the job ran")
    return own_rows


@contextmanager
def _explaining() -> Iterator[None]:
    """Turn whatever the library raises into an error for users; it has no type for files that are damaged."""
    try:
        yield
    except (ImportError, OSError, MemoryError, _Changed):
        raise
    except OverflowError as error:
        raise ValueError(f"a date or time is not in the years 1 to 9999: {error}") from error
    except Exception as error:
        reason = str(error) or type(error).__name__
        if "need to install" in reason:
            raise ValueError(f"{reason}: add one to the job's environment") from error
        hint = "copy the file again, or leave it out"
        raise ValueError(f"not an Avro file, or damaged, or changed while the job ran: {reason}; {hint}") from error


def _kind(schema: Any) -> str:
    """The type of a column: plain, with the logical type that matters for its values, or empty for any other."""
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        return _kind(others[0]) if len(others) == 1 else ""
    if not isinstance(schema, dict):
        return str(schema)
    kind = _kind(schema["type"])
    logical = f"{kind}-{schema.get('logicalType')}"
    return logical if logical in _DTYPES or logical in _OBJECTS else kind


def _column(values: list[Any], kind: str, *, is_exact: bool) -> Any:
    import pandas as pd

    if is_exact and kind == "long" and None in values:
        return int_column(values)
    dtype = _DTYPES.get(kind, "object")
    if dtype in _DTYPES_WITH_NULLS and None in values:
        dtype = _DTYPES_WITH_NULLS[dtype]
    if kind == _UUID:
        values = [None if value is None else str(value) for value in values]
    return pd.Series(values, dtype=dtype)
