"""The rows of a mini-batch as an Arrow table: `mini_batch_format` arrow, polars or pandas_pyarrow.

The values are those that `table.py` has, but whole numbers beside nulls are whole numbers, and columns of several types
are texts (`arrow_arrays.py`). Where a step looks at values, only the columns that it names go through pandas.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from parallelrun_worker.tables.arrow_arrays import array_of, arrow_of, widened
from parallelrun_worker.tables.elsewhere import Place
from parallelrun_worker.tables.inference import Kind
from parallelrun_worker.tables.parquet_rows import to_frame
from parallelrun_worker.tables.stacking import stacked
from parallelrun_worker.tables.steps import (
    COUNTING,
    EXTRACT,
    NamedColumns,
    apply_step,
    check_filtered,
    check_kept,
    columns_left,
    selected,
)
from parallelrun_worker.tables.table import PATH, PATH_TWICE, Table, salt_of
from parallelrun_worker.tables.table_format import Piece, named
from parallelrun_worker.tables.values import Values

FORMATS = ("arrow", "polars", "pandas_pyarrow")
_LOOKING = ("filter", "convert_column_types")
"""Steps that look at values."""
_SELECTING = ("keep_columns", "drop_columns")


class ArrowRows:
    """Reads one input.

    Args:
        table: reads it for pandas.
        form: one of `FORMATS`.
    """

    def __init__(self, table: Table, form: str) -> None:
        self._table = table
        self._form = form
        self._are_values_needed = any(step["step"] in _LOOKING for step in table.steps)

    def read(self, pieces: list[Piece], places: dict[str, Place] | None = None) -> Any:
        """The rows of these pieces, in order, as the job wants them; raises as `Table.read` does."""
        return handed_over(self.rows(pieces, places), self._form)

    def rows(self, pieces: list[Piece], places: dict[str, Place] | None = None) -> Any:
        table = self._table
        if table.tail:  # steps on all rows of the table, which is one mini-batch
            return arrow_of(table.read(pieces, places), self._kinds([*table.steps, *table.tail]))
        if places is not None:
            table.format.staged_at(places)
        if table.is_shuffled:
            with table.noting():  # who grouped the rows has warned of them
                return stacked([rows for piece in pieces for rows in self._group(piece)])
        return stacked([self._piece(piece) for piece in pieces])

    def _piece(self, piece: Piece) -> Any:
        table, path = self._table, piece[0]
        with named(path), table.noting() as warnings:
            rows = table.format.arrow(piece)
        if self._are_values_needed and table.format.has_texts_of_values(rows):  # they are read again, and warned of
            return arrow_of(table.piece(piece), self._kinds(table.steps))
        table.format.warnings.add_all(warnings)
        return self._dressed(rows, path, table.steps, salt_of(piece))

    def _group(self, piece: Piece) -> Iterator[Any]:
        table = self._table
        for data, source, header in table.stored(piece):
            rows = table.format.arrow_of_stored(data, source, header)
            if self._are_values_needed and table.format.has_texts_of_values(rows):
                frame = table.dressed(table.format.frame_of_stored(data, source, header), source, table.keeping, [])
                yield arrow_of(frame, self._kinds(table.keeping))
            else:
                yield self._dressed(rows, source, table.keeping, [])

    def _kinds(self, steps: list[dict[str, Any]]) -> dict[str, Kind]:
        """The kinds of the columns after these steps, where they are known."""
        kinds = self._table.format.kinds()
        for step in steps:
            for conversion in step["conversions"] if step["step"] == "convert_column_types" else ():
                kinds |= dict.fromkeys(selected(NamedColumns(list(kinds)), conversion["columns"]), conversion["type"])
        return kinds

    def _dressed(self, rows: Any, path: str, steps: list[dict[str, Any]], salt: list[int]) -> Any:
        """Rows as they were read from a file, with the columns that come from its path, after these steps."""
        import pyarrow as pa

        table = self._table
        if table.extracts_first:
            rows = self._with_path_keys(rows, path, in_front=True)
        if table.includes_path:
            if PATH in rows.column_names:
                raise ValueError(PATH_TWICE)
            rows = rows.add_column(0, PATH, pa.repeat(_text(path), len(rows)))
        for step in steps:
            if step["step"] == EXTRACT:
                rows = self._with_path_keys(rows, path, in_front=False)
            elif step["step"] not in COUNTING:  # the master has left out what they leave out
                if table.format.has_fixed_columns:
                    check_kept(NamedColumns(rows.column_names), step)
                rows = table.warned(partial(_after, rows, step, salt), path)
        return rows

    def _with_path_keys(self, rows: Any, path: str, *, in_front: bool) -> Any:
        import pandas as pd

        keys = self._table.path_keys
        row = keys.add_to(pd.DataFrame(columns=rows.column_names, index=[0]), path, in_front=in_front)
        self._table.warn_of_path(path)
        return widened(rows, row, keys.kinds() if in_front else {})


def _after(rows: Any, step: dict[str, Any], salt: list[int], values: Values | None) -> Any:
    """The rows after one step; arguments and errors are those of `apply_step`."""
    import numpy as np
    import pandas as pd

    names = rows.column_names
    if step["step"] in _SELECTING:
        return rows.select(columns_left(NamedColumns(names), step))
    if step["step"] == "convert_column_types":
        return _converted(rows, step, salt, values)
    looked_at: list[str] = []
    if step["step"] == "filter":
        check_filtered(NamedColumns(names), step["expression"])
        looked_at = [name for name in names if name in _columns_of(step["expression"])]
    frame = to_frame(rows.select(looked_at), is_exact=True) if looked_at else pd.DataFrame(index=range(len(rows)))
    is_kept = np.zeros(len(rows), dtype=bool)
    is_kept[apply_step(frame, step, salt, values).index] = True
    return rows if is_kept.all() else rows.filter(is_kept)


def _converted(rows: Any, step: dict[str, Any], salt: list[int], values: Values | None) -> Any:
    kinds: dict[str, Kind] = {}
    for conversion in step["conversions"]:
        kinds |= dict.fromkeys(selected(NamedColumns(rows.column_names), conversion["columns"]), conversion["type"])
    if not kinds:
        return rows
    names = [name for name in rows.column_names if name in kinds]
    frame = apply_step(to_frame(rows.select(names), is_exact=True), step, salt, values)
    for name in names:
        place = rows.column_names.index(name)
        rows = rows.set_column(place, name, array_of(frame[name], kinds[name], name))
    return rows


def _columns_of(expression: Any) -> Iterator[str]:
    """Yield the names of the columns that a filter looks at."""
    if isinstance(expression, list) and expression[0] == "col":
        yield expression[1]
    elif isinstance(expression, list):
        for operand in expression[1:]:
            yield from _columns_of(operand)


def _text(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode()


def handed_over(rows: Any, form: str) -> Any:
    """An Arrow table as run() gets it."""
    if rows.schema.metadata:  # `pandas` in it names an index of all rows of a file
        rows = rows.replace_schema_metadata({
            key: text for key, text in rows.schema.metadata.items() if key != b"pandas"
        })  # fmt: skip
    if form == "polars":
        import polars

        frame: Any = polars.from_arrow(rows, rechunk=False)
        frame.columns = rows.column_names  # it calls one without a name column_0
        return frame
    if form == "pandas_pyarrow":
        import pandas as pd

        return rows.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    return rows
