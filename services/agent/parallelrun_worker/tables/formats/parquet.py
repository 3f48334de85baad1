"""Parquet files: each with the columns and types that it has."""

from functools import cached_property
from typing import Any

from parallelrun_worker.tables.parquet_reader import ParquetReader
from parallelrun_worker.tables.parquet_rows import ArrowRecords, read_streams, to_frame
from parallelrun_worker.tables.stacking import stacked
from parallelrun_worker.tables.steps import columns_read
from parallelrun_worker.tables.table_format import Piece, Records, TableFormat
from parallelrun_worker.tables.together import together


class ParquetFormat(TableFormat):
    """The reader of Parquet files: of the columns, only those are read that the first steps leave."""

    imports = ("pyarrow.parquet",)
    suffixes = (".parquet",)

    @staticmethod
    def read_file(path: str) -> Any:
        import pandas as pd

        return pd.read_parquet(path)

    @cached_property
    def _reader(self) -> ParquetReader:
        return ParquetReader(self.open)

    def names(self) -> list[str]:
        return [name for path in self.plan["sample"] for name in self._reader.names(path)]

    def frame(self, piece: Piece) -> Any:
        rows, repeating = self._reader.read_for_frame(piece, self._columns(piece[0]))
        return to_frame(rows, is_exact=self._is_exact, repeating=repeating, text_dtype=self.text_dtype)

    def records(self, piece: Piece) -> Records:
        return ArrowRecords(self._reader.read(piece, self._columns(piece[0])), self._frame_of)

    def frame_of_stored(self, data: bytes, path: str, header: list[str | None]) -> Any:
        return together([self._frame_of(rows) for rows in read_streams(data)])

    def arrow(self, piece: Piece) -> Any:
        return self._reader.read(piece, self._columns(piece[0]))

    def arrow_of_stored(self, data: bytes, path: str, header: list[str | None]) -> Any:
        return stacked(read_streams(data))

    def has_texts_of_values(self, rows: Any) -> bool:
        return False

    def _frame_of(self, rows: Any) -> Any:
        return to_frame(rows, is_exact=self._is_exact, text_dtype=self.text_dtype)

    @property
    def _is_exact(self) -> bool:
        return bool(self.options.get("has_exact_integers"))

    def _columns(self, path: str) -> list[str] | None:
        """The columns of a file that the first steps leave; None: all."""
        names = self._reader.names(path)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(
                f"two columns have the name {twice!r}, of which rows can hold one: write it with other names"
            )
        columns = columns_read(names, self.plan["steps"])
        return None if len(columns) == len(names) else columns
