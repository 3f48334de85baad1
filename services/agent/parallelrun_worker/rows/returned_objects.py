"""Rows of text that say nothing but a type and an address, as that of a generator does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from parallelrun_worker.rows.returned import BadReturn, has_no_text
from parallelrun_worker.tables.data_warnings import DataWarning, DataWarnings

MARK = " at 0x"
"""In every such text."""
_DEPTH = 3


class ReturnedObjects:
    """Refuses such rows, or warns of them.

    Args:
        refuses: a mini-batch that has one fails.
    """

    def __init__(self, warnings: DataWarnings, *, refuses: bool) -> None:
        self._warnings = warnings
        self._refuses = refuses

    def check(self, values: Iterable[Any]) -> None:
        """Look at each value, and within lists and dicts.

        Raises:
            BadReturn: one has no text of its own.
        """
        objects = [each for each in map(_without_text, values) if each is not None]
        if not objects:
            return
        name = type(objects[0]).__qualname__
        if self._refuses:
            raise BadReturn(
                f"run() returned an element of the type {name}, which has no text of its own: return its values, as "
                "text, numbers or lists; append_row_objects: text would write its type and address"
            )
        event = f"run() returned elements of the type {name}, and their type and address were written"
        remedy = "append_row_objects: refuse would fail such a mini-batch"
        self._warnings.add(DataWarning("returned_objects", "", "", event, remedy, len(objects), "element"))


def _without_text(value: Any, depth: int = _DEPTH) -> Any:
    """Return the value, or the first one in it, that has no text of its own; None if all have."""
    if isinstance(value, (list, tuple, dict)):
        within = value.values() if isinstance(value, dict) else value
        each_in = (_without_text(each, depth - 1) for each in within) if depth else ()
        return next((each for each in each_in if each is not None), None)
    return value if value is not None and has_no_text(value) else None
