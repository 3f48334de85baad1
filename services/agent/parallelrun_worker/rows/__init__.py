"""Rows in a part file: from what `run()` returns (reference §3.5 and §7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parallelrun_worker.rows.returned import BadReturn, Rendered

if TYPE_CHECKING:
    from collections.abc import Callable

    from parallelrun_worker.rows.returned_columns import ReturnedColumns
    from parallelrun_worker.rows.returned_objects import ReturnedObjects
    from parallelrun_worker.tables.data_warnings import DataWarnings

__all__ = ["BadReturn", "Rendered", "renderer"]


def renderer(
    output: dict[str, Any],
    columns: ReturnedColumns | None = None,
    objects: ReturnedObjects | None = None,
    warnings: DataWarnings | None = None,
) -> Callable[[object], Rendered]:
    """The function that renders a job's rows, by `format` (see core/wire/row_format.py), `separator` and `safe`.

    It raises BadReturn for anything but a list, tuple, DataFrame or array.

    Args:
        columns: compares those of DataFrames, for lines without a header.
        objects: looks for rows without a text of their own, for lines.
        warnings: get what lines of JSON can't hold.

    Raises:
        ImportError: the format needs pyarrow, and the environment of the workers has none.
    """
    if output["format"] == "jsonl":
        from parallelrun_worker.rows import json_lines

        return json_lines.JsonRows(warnings).render
    if output["format"] == "parquet":
        from parallelrun_worker.rows import arrow

        arrow.check()
        return arrow.render
    from parallelrun_worker.rows import text

    return text.Lines(
        output["separator"], headed=output["format"] == "headed", safe=output["safe"], columns=columns, objects=objects
    ).render
