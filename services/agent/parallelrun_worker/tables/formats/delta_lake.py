"""Delta tables: Parquet files with the values of partition columns in their paths."""

from base64 import b64decode
from collections.abc import Collection
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from parallelrun_worker.tables.arrow_arrays import widened
from parallelrun_worker.tables.conversion import convert
from parallelrun_worker.tables.inference import STRING, Kind
from parallelrun_worker.tables.parquet_reader import ParquetReader
from parallelrun_worker.tables.parquet_rows import ArrowRecords, read_streams, to_frame
from parallelrun_worker.tables.stacking import stacked
from parallelrun_worker.tables.steps import columns_read
from parallelrun_worker.tables.table_format import Piece, Records, TableFormat
from parallelrun_worker.tables.text_dtype import put_text_dtype

_NULL = "__HIVE_DEFAULT_PARTITION__"
_DATES: Kind = {"kind": "datetime", "formats": ["%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f"]}
_KINDS: dict[str, Kind] = {
    **{name: {"kind": "int"} for name in ("byte", "short", "integer", "long")},
    **{name: {"kind": "float"} for name in ("float", "double")},
    "boolean": {"kind": "bool"},
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), _DATES),
}


class DeltaLakeFormat(TableFormat):
    """All files have the columns of the table's version."""

    imports = ("pyarrow.parquet",)
    needs_source = True

    @cached_property
    def _reader(self) -> ParquetReader:
        return ParquetReader(self.open)

    def names(self) -> list[str]:
        return list(self.options["columns"])

    @cached_property
    def _kept(self) -> list[str]:
        """The columns of the table that the first steps leave."""
        return columns_read(self.names(), self.plan["steps"])

    def _columns(self, path: str) -> list[str] | None:
        """The columns of a file that the first steps leave; None: all, also if these are only in its path."""
        names = self._reader.names(path)
        columns = [name for name in names if name in self._kept]
        return columns if 0 < len(columns) < len(names) else None

    def frame(self, piece: Piece) -> Any:
        rows, repeating = self._reader.read_for_frame(piece, self._columns(piece[0]))
        return self._whole(rows, piece[0], repeating)

    def records(self, piece: Piece) -> Records:
        return ArrowRecords(self._reader.read(piece, self._columns(piece[0])), lambda rows: self._whole(rows, piece[0]))

    def frame_of_stored(self, data: bytes, path: str, header: list[str | None]) -> Any:
        return self._whole(stacked(read_streams(data)), path)

    def arrow(self, piece: Piece) -> Any:
        return self._whole_arrow(self._reader.read(piece, self._columns(piece[0])), piece[0])

    def arrow_of_stored(self, data: bytes, path: str, header: list[str | None]) -> Any:
        return self._whole_arrow(stacked(read_streams(data)), path)

    def has_texts_of_values(self, rows: Any) -> bool:
        return False

    def _whole_arrow(self, rows: Any, path: str) -> Any:
        import pandas as pd

        rows = _with_missing(rows, self.options, self._kept)
        row = _with_partitions(pd.DataFrame(columns=rows.column_names, index=[0]), path, self.plan)
        partitions = self.options["partitions"]
        return widened(rows, row, {name: _KINDS.get(kind, STRING) for name, kind in partitions.items()})

    def _whole(self, rows: Any, path: str, repeating: Collection[str] = ()) -> Any:
        is_exact = bool(self.options.get("has_exact_integers"))
        rows = _with_missing(rows, self.options, self._kept)
        frame = to_frame(rows, is_exact=is_exact, repeating=repeating, text_dtype=self.text_dtype)
        frame = _with_partitions(frame, path, self.plan)
        texts = (name for name, kind in self.options["partitions"].items() if kind not in _KINDS)
        put_text_dtype(frame, texts, self.text_dtype)
        return frame


def _with_missing(table: Any, read: dict[str, Any], kept: list[str]) -> Any:
    """The rows of one file of a Delta table, with nulls in those of the kept columns that are newer than the file."""
    import pyarrow as pa

    if not read.get("schema"):  # a job of a release that did not record it
        return table
    missing = {*kept}.difference(table.column_names, read["partitions"])
    for field in pa.ipc.read_schema(pa.py_buffer(b64decode(read["schema"]))):
        if field.name in missing:
            table = table.append_column(field, pa.nulls(len(table), field.type))
    return table


def _with_partitions(frame: Any, path: str, plan: dict[str, Any]) -> Any:
    """The rows of one file of a Delta table with its partition columns, whose values are in the path."""
    import pandas as pd

    below = path[len(plan["root"].rstrip("/")) + 1 :] if path.startswith(plan["root"]) else path
    parts = [part.partition("=") for part in below.split("/")[:-1]]
    texts = {unquote(name): None if value == _NULL else unquote(value) for name, equals, value in parts if equals}
    kinds = plan["read"]["partitions"]
    for name, kind in kinds.items():
        text = texts.get(name)
        if text is not None and kind in ("float", "double"):
            frame[name] = float(text)  # older releases of pandas often make the next one of it
            continue
        column = convert(pd.Series([text] * len(frame), dtype=object), _KINDS.get(kind, STRING))
        is_far = _KINDS.get(kind) is _DATES and column.isna().any()
        frame[name] = _far_times(text, len(frame)) if text is not None and is_far else column
    order = [name for name in plan["read"]["columns"] if name in frame.columns]
    return frame[order]


def _far_times(text: str, rows: int) -> Any:
    """A time that nanoseconds in 64 bits don't reach, such as 9999-12-31, in microseconds.

    Raises:
        ValueError: it is no time.
    """
    import numpy as np
    import pandas as pd

    return pd.Series(np.full(rows, np.datetime64(text, "us")))
