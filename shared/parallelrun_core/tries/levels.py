"""Sums over buckets of neighboring mini-batches, kept for each size of buckets that somebody looks at.

Sizes are powers of two, and buckets begin at multiples of them: so the same ones are asked for again and again, and
only those in which something has happened are summed up again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from parallelrun_core.tries.columns import Array

LEAST_SIZE: Final = 64
"""Smaller buckets are not kept: a screenful of them is summed up at once."""

Sums = dict[str, "Array"]
"""By name, a value for each bucket."""


class ZoomLevel:
    """All buckets of one size."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._is_fresh = np.zeros(0, "?")
        self._sums: Sums = {}

    def touch(self, numbers: Array) -> None:
        """Something has happened to these mini-batches."""
        buckets = numbers // self.size
        self._is_fresh[buckets[buckets < len(self._is_fresh)]] = False

    def sums(self, first: int, end: int, summed: Callable[[int, int], Sums]) -> Sums:
        """The sums of the buckets from `first` up to `end`, exclusively.

        Args:
            summed: the sums of the buckets from one up to another, which nobody has kept.
        """
        self._grow(end)
        stale = first + np.flatnonzero(~self._is_fresh[first:end])
        for low, high in _runs(stale):
            for name, values in summed(low, high).items():
                if name not in self._sums:
                    self._sums[name] = np.zeros(len(self._is_fresh), values.dtype)
                self._sums[name][low:high] = values
            self._is_fresh[low:high] = True
        return {name: values[first:end] for name, values in self._sums.items()}

    def _grow(self, end: int) -> None:
        if (more := end - len(self._is_fresh)) > 0:
            more = max(more, len(self._is_fresh) // 2)
            self._is_fresh = np.concatenate((self._is_fresh, np.zeros(more, "?")))
            for name, values in self._sums.items():
                self._sums[name] = np.concatenate((values, np.zeros(more, values.dtype)))

    @property
    def bytes(self) -> int:
        return self._is_fresh.nbytes + sum(each.nbytes for each in self._sums.values())


class Levels:
    def __init__(self) -> None:
        self._levels: dict[int, ZoomLevel] = {}

    def of(self, size: int) -> ZoomLevel:
        return self._levels.setdefault(size, ZoomLevel(size))

    def touch(self, numbers: Array) -> None:
        """Something has happened to these mini-batches."""
        for level in self._levels.values():
            level.touch(numbers)

    @property
    def bytes(self) -> int:
        return sum(level.bytes for level in self._levels.values())


def _runs(numbers: Array) -> list[tuple[int, int]]:
    """The stretches of numbers that follow each other, each with its end, exclusively."""
    if not len(numbers):
        return []
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    firsts = numbers[np.concatenate(([0], breaks + 1))]
    lasts = numbers[np.concatenate((breaks, [len(numbers) - 1]))]
    return list(zip(firsts.tolist(), (lasts + 1).tolist(), strict=True))
