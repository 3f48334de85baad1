"""Columns of the DataFrames that run() returns, where lines without a header have them by their places.

The columns of the job's first DataFrame are frozen for all workers. What becomes of another one, `append_row_columns`
of the job says: by `name`, its columns are put where those of the same names are, columns that it lacks are left empty,
and new ones come behind all others and are frozen, too; by `position` (and in jobs of earlier releases) they stay as
they are. A warning tells of both.
"""

from __future__ import annotations

from typing import Any

from parallelrun_worker.rows.returned import BadReturn, column_names
from parallelrun_worker.tables.data_warnings import DataWarning, DataWarnings

_MOST_NAMED = 10
_MOST_LAYOUTS = 100
_BETTER = "append_row_dataframe_header: true, or an output file .jsonl or .parquet"


class ReturnedColumns:
    """Compares the columns of each DataFrame with those of the job's earlier ones.

    Args:
        path: where the first ones are frozen; later ones are beside it.
        by_name: columns are put in order by their names.
    """

    def __init__(self, path: str, warnings: DataWarnings, *, by_name: bool = False) -> None:
        self._path = path
        self._warnings = warnings
        self._by_name = by_name
        self._first: list[str] | None = None
        self._layouts = 0
        """How many lists of columns have been frozen so far, as far as this worker knows."""

    def arranged(self, table: Any) -> Any:
        """Return the table with its columns where the job has them.

        Raises:
            OSError, ValueError: the columns can't be frozen, or what was frozen can't be read.
            BadReturn: there are too many lists of columns.
        """
        names = column_names(table)
        if names == self._first:
            return table
        if not self._by_name:
            self._check(names)
            return table
        job_columns = self._known(names)
        if names == job_columns:
            return table
        places = dict(zip(_numbered(names), range(len(names))))  # noqa: B905 - Python 3.9
        event = f"run() returned the columns {_some(names)}, which were put by name where {_some(job_columns)} are"
        remedy = f"{_BETTER} has the names, too; append_row_columns: position leaves them as they come"
        self._warnings.add(DataWarning("returned_columns", "", "", event, remedy, 1, "frame"))
        plain = table.copy(deep=False)
        plain.columns = range(len(names))
        # What isn't there has a place behind all others, and is filled with nulls.
        return plain.reindex(
            columns=[places.get(name, len(names) + at) for at, name in enumerate(_numbered(job_columns))]
        )

    def _known(self, names: list[str]) -> list[str]:
        """All columns of the job, in their places, with those of `names`."""
        job_columns = self._first if self._first is not None else self._frozen(names)
        while missing := [name for name in _numbered(names) if name not in set(_numbered(job_columns))]:
            if self._layouts >= _MOST_LAYOUTS:
                raise BadReturn(
                    f"run() returned the column {missing[0][0]!r}, and {_MOST_LAYOUTS} other lists of columns before: "
                    f"{_BETTER} puts them together; append_row_columns: position leaves them as they come"
                )
            job_columns = self._frozen([*job_columns, *(name for name, _ in missing)])
        self._first = job_columns
        return job_columns

    def _frozen(self, names: list[str]) -> list[str]:
        """Freeze the next list of columns, unless another worker has done so; returns what is frozen."""
        from parallelrun_worker.tables.schema import Schema, freeze, frozen

        path = self._path if not self._layouts else f"{self._path[: -len('.json')]}.{self._layouts}.json"
        columns = (frozen(path) or freeze(path, Schema(names, []))).names
        self._layouts += 1
        return columns

    def _check(self, names: list[str]) -> None:
        """Warn if a table's columns are others than the first ones, or in another order."""
        if self._first is None:
            try:
                self._first = self._frozen(names)
            except (OSError, ValueError):  # a warning fails no mini-batch
                self._first = names
        if names != self._first:
            event = f"run() returned the columns {_some(names)} where others had {_some(self._first)}, by place"
            remedy = f"append_row_columns: name, {_BETTER} puts them together by name"
            self._warnings.add(DataWarning("returned_columns", "", "", event, remedy, 1, "frame"))


def _numbered(names: list[str]) -> list[tuple[str, int]]:
    """Each name, with how many of that name precede it."""
    counts: dict[str, int] = {}
    numbered = []
    for name in names:
        counts[name] = counts.get(name, -1) + 1
        numbered.append((name, counts[name]))
    return numbered


def _some(names: list[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
