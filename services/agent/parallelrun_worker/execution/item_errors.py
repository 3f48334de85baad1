"""Items for which run() has returned an `ItemError`: they are taken out of its rows, and told to the agent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from parallelrun_worker.plurals import counted
from parallelrun_worker.rows.returned import BadReturn
from parallelrun_worker.script_api.script import ItemError

_MOST_RUNS = 1_000
_MOST_MESSAGE = 300
_MOST_BYTES = 1 << 18
_MASK = "***"


class Separated(NamedTuple):
    """The rows that run() has returned, without the items that have failed."""

    returned: Any
    errors: list[tuple[int, ItemError]]
    """Index in the mini-batch of each item that has failed, and why."""


def separate(returned: Any, items: int) -> Separated:
    """Take the items that have failed out of what run() has returned.

    Raises:
        BadReturn: some have, but there isn't one value for each item, so nobody knows which.
    """
    if hasattr(returned, "columns") and hasattr(returned, "iloc"):
        errors = _errors_in_table(returned)
    elif isinstance(returned, (list, tuple)) or _holds_objects(returned):
        errors = [(index, value) for index, value in enumerate(returned) if isinstance(value, ItemError)]
    else:
        errors = []
    if not errors:
        return Separated(returned, [])
    if len(returned) != items:
        raise BadReturn(
            f"run() returned {len(errors):,} ItemError among {counted(len(returned), 'row')} for "
            f"{counted(items, 'item')}: with an ItemError it must return one value for each item, in their order"
        )
    failed = {index for index, _ in errors}
    good = [index for index in range(items) if index not in failed]
    if isinstance(returned, (list, tuple)):
        return Separated([returned[index] for index in good], errors)
    if hasattr(returned, "iloc"):
        return Separated(returned.iloc[good], errors)
    return Separated(returned[good], errors)


def message_of(error: ItemError) -> str:
    """Return the reason of an error, as a failure has it."""
    try:
        return f"ItemError: {error}"
    except Exception:  # an argument's own __str__ may be broken
        return "ItemError"


def packed(errors: Iterable[tuple[int, ItemError]], masked: Sequence[str]) -> bytes:
    """Return JSON `[[first, items, message], …]`: neighbours with the same reason together, up to a number of entries.

    Items beyond it are counted as failed, but not named.
    """
    runs: list[tuple[int, int, str]] = []
    size = 0
    for index, error in errors:
        message = message_of(error)
        for each in masked:
            message = message.replace(each, _MASK)
        # A name that isn't UTF-8 has lone surrogates, which are no text for the agent.
        message = message.encode("utf-8", "backslashreplace").decode()[:_MOST_MESSAGE]
        if runs and runs[-1][2] == message and sum(runs[-1][:2]) == index:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1, message)
            continue
        size += len(message)
        if len(runs) == _MOST_RUNS or size > _MOST_BYTES // 2:
            break
        runs.append((index, 1, message))
    return json.dumps(runs).encode()


def _errors_in_table(table: Any) -> list[tuple[int, ItemError]]:
    """Return the first error of each row that has one."""
    errors: dict[int, ItemError] = {}
    for column in range(len(table.columns)):
        values = table.iloc[:, column]
        if values.dtype.kind == "O":
            for index, value in enumerate(values):
                if isinstance(value, ItemError):
                    errors.setdefault(index, value)
    return sorted(errors.items(), key=lambda each: each[0])


def _holds_objects(returned: Any) -> bool:
    """Return whether it is a Series, or an array with one dimension, of Python objects."""
    return getattr(getattr(returned, "dtype", None), "kind", "") == "O" and getattr(returned, "ndim", 0) == 1
