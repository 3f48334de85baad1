"""Rows in a part file: from what `run()` returns (reference §3.5 and §7)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from parallelrun_worker.rows.returned import BadReturn, Rendered

if TYPE_CHECKING:
    from parallelrun_worker.rows.returned_columns import ReturnedColumns
    from parallelrun_worker.rows.returned_objects import ReturnedObjects
    from parallelrun_worker.tables.data_warnings import DataWarnings

__all__ = ["BadReturn", "Rendered", "RowRenderer", "renderer"]


class RowRenderer:
    """Renders a job's rows: the base of the `RENDERER` of each module of `parallelrun_worker.rows.formats`.

    Args:
        output: `separator`, `header` and `safe` of the job, which lines go by.
        columns: compares those of DataFrames, for lines without a header.
        objects: looks for rows without a text of their own, for lines.
        warnings: get what lines of JSON can't hold.

    Raises:
        ImportError: the environment of the workers lacks a package that the format needs.
    """

    def __init__(
        self,
        output: dict[str, Any],
        columns: ReturnedColumns | None = None,
        objects: ReturnedObjects | None = None,
        warnings: DataWarnings | None = None,
    ) -> None:
        self._output = output
        self._columns = columns
        self._objects = objects
        self._warnings = warnings

    def render(self, returned: Any) -> Rendered:
        """Return the rows of a mini-batch.

        Raises:
            BadReturn: it is anything but a list, tuple, DataFrame or array, or the format has no such value.
        """
        raise NotImplementedError

    def header_bytes(self, segment: bytes) -> int | None:
        """Return how many bytes of a segment precede its rows, which are lines; None: its rows can't be told apart."""
        return 0


def renderer(
    output: dict[str, Any],
    columns: ReturnedColumns | None = None,
    objects: ReturnedObjects | None = None,
    warnings: DataWarnings | None = None,
) -> RowRenderer:
    """The renderer of the format that `format` of the output names; see there for the arguments."""
    rows: RowRenderer = import_module(f"{__name__}.formats.{output['format']}").RENDERER(
        output, columns, objects, warnings
    )
    return rows
