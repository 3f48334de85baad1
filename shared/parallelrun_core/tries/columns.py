"""Tables of numbers that only grow, by columns: a million tries in 50 MB, and summed up in milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
_FIRST_ROOM: Final = 1024


class Columns:
    """Columns of equal length, to which rows are added.

    Args:
        dtypes: the numpy type of each column, by its name.
    """

    def __init__(self, **dtypes: str) -> None:
        self._arrays = {name: np.zeros(_FIRST_ROOM, dtype) for name, dtype in dtypes.items()}
        self.count = 0
        """Number of rows."""

    def __getitem__(self, name: str) -> Array:
        """A column as it is now; rows that are added later are not in it."""
        return self._arrays[name][: self.count]

    def extend(self, **values: Sequence[Any] | Array) -> None:
        """Add rows: equally many values for each column."""
        end = self.count + len(next(iter(values.values())))
        for name, array in self._arrays.items():
            self._arrays[name] = _with_room(array, end)
            self._arrays[name][self.count : end] = values[name]
        self.count = end

    @property
    def names(self) -> list[str]:
        return list(self._arrays)

    @property
    def bytes(self) -> int:
        """The memory of all columns."""
        return sum(column.nbytes for column in self._arrays.values())


class ByMiniBatch:
    """A value for each mini-batch: an array, indexed by the ids of mini-batches, that grows to the highest id.

    Args:
        missing: the value of mini-batches for which none was set.
    """

    def __init__(self, dtype: str, missing: int) -> None:
        self._missing = missing
        self._values = np.full(_FIRST_ROOM, missing, dtype)
        self.end = 0
        """One more than the highest id for which a value was set."""

    def set(self, ids: Array, values: Array | int) -> None:
        """Set values; of several for the same id, the last one counts."""
        if not len(ids):
            return
        self.end = max(self.end, int(ids.max()) + 1)
        self._values = _with_room(self._values, self.end, self._missing)
        self._values[ids] = values

    def range(self, first: int, end: int) -> Array:
        """The values of the ids from `first` up to `end`, exclusively."""
        values = self._values[first : min(end, self.end)]
        short = end - first - len(values)
        return np.concatenate((values, np.full(short, self._missing, values.dtype))) if short > 0 else values

    @property
    def bytes(self) -> int:
        """The memory of all values."""
        return self._values.nbytes


def json_numbers(values: Array, digits: int = 6) -> list[float | None]:
    """Numbers as JSON can have them: rounded, and None for what is infinite or not a number."""
    rounded = np.round(values.astype("f8"), digits)
    numbers: list[float | None] = rounded.tolist()
    for index in np.flatnonzero(~np.isfinite(rounded)).tolist():
        numbers[index] = None
    return numbers


def json_number(value: float, digits: int = 6) -> float | None:
    """A number as JSON can have it: rounded, and None for what is infinite or not a number."""
    return json_numbers(np.array([value]), digits)[0]


def _with_room(array: Array, length: int, filler: int = 0) -> Array:
    """An array of at least this length that begins with this one. It grows by half, so that adding is cheap."""
    if length <= len(array):
        return array
    added = max(length, len(array) * 3 // 2) - len(array)
    return np.concatenate((array, np.full(added, filler, array.dtype)))
