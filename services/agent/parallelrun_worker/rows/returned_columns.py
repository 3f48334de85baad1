"""Columns of the DataFrames that run() returns, where lines without a header have them by their places."""

from __future__ import annotations

from typing import Any

from parallelrun_worker.data_warnings import DataWarning, DataWarnings
from parallelrun_worker.rows.returned import column_names

_MOST_NAMED = 10


class ReturnedColumns:
    """Compares the columns of each DataFrame with those of the job's first one, and warns where they differ.

    Args:
        path: where the first ones are frozen, for all workers.
    """

    def __init__(self, path: str, warnings: DataWarnings) -> None:
        self._path = path
        self._warnings = warnings
        self._first: list[str] | None = None

    def check(self, table: Any) -> None:
        """Warn if a table's columns are others, or in another order."""
        names = column_names(table)
        if names == self._first:
            return
        if self._first is None:
            self._first = self._frozen(names)
        if names != self._first:
            event = f"run() returned the columns {_some(names)} where others had {_some(self._first)}, by place"
            remedy = (
                "append_row_dataframe_header: true, or an output file .jsonl or .parquet, puts them together by name"
            )
            self._warnings.add(DataWarning("returned_columns", "", "", event, remedy, 1, "frame"))

    def _frozen(self, names: list[str]) -> list[str]:
        from parallelrun_worker.tables.schema import Schema, freeze, frozen

        try:
            return (frozen(self._path) or freeze(self._path, Schema(names, []))).names
        except (OSError, ValueError):  # a warning fails no mini-batch
            return names


def _some(names: list[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
