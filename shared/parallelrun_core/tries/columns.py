"""Tables of numbers that only grow, by columns: a million tries in 50 MB, and summed up in milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_FIRST: int = 1024


class Columns:
    """Columns of equal length.

    Args:
        kinds: the numpy type of each.
    """

    def __init__(self, **kinds: str) -> None:
        self._arrays = {name: np.zeros(_FIRST, kind) for name, kind in kinds.items()}
        self.count = 0

    def __getitem__(self, name: str) -> Array:
        """A column as it is now; what is added later is not in it."""
        return self._arrays[name][: self.count]

    def extend(self, **values: Sequence[Any] | Array) -> None:
        """Add rows: as many values for each column."""
        added = len(next(iter(values.values())))
        end = self.count + added
        for name in self._arrays:
            if end > len(self._arrays[name]):
                self._arrays[name] = np.resize(self._arrays[name], max(end, self.count * 3 // 2))
            self._arrays[name][self.count : end] = values[name]
        self.count = end

    @property
    def names(self) -> list[str]:
        return list(self._arrays)

    @property
    def bytes(self) -> int:
        return sum(column.nbytes for column in self._arrays.values())


class ByNumber:
    """A value for each mini-batch, of which most are there: an array that grows to the highest number.

    Args:
        missing: the value of those that were never set.
    """

    def __init__(self, kind: str, missing: int) -> None:
        self._missing = missing
        self._values = np.full(_FIRST, missing, kind)
        self.end = 0
        """One more than the highest number that was set."""

    def set(self, numbers: Array, values: Array | int) -> None:
        """Set values; of those for the same number, the last one counts."""
        if not len(numbers):
            return
        self.end = max(self.end, int(numbers.max()) + 1)
        if self.end > len(self._values):
            more = np.full(max(self.end, len(self._values) * 3 // 2) - len(self._values), self._missing)
            self._values = np.concatenate((self._values, more.astype(self._values.dtype)))
        self._values[numbers] = values

    def range(self, first: int, end: int) -> Array:
        """The values from `first` up to `end`, exclusively; as far as they were never set, the missing one."""
        values = self._values[first : min(end, self.end)]
        short = end - first - len(values)
        return np.concatenate((values, np.full(short, self._missing, values.dtype))) if short > 0 else values

    @property
    def bytes(self) -> int:
        return self._values.nbytes


def numbers(values: Array, digits: int = 6) -> list[float | None]:
    """Rounded; None for what is infinite or no number."""
    rounded = np.round(values.astype("f8"), digits)
    values_or_none: list[float | None] = rounded.tolist()
    unknown: list[int] = np.flatnonzero(~np.isfinite(rounded)).tolist()
    for each in unknown:
        values_or_none[each] = None
    return values_or_none


def number(value: float, digits: int = 6) -> float | None:
    """Return one of these."""
    return numbers(np.array([value]), digits)[0]
