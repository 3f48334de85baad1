"""The time grid: what workers did, in cells of time, kept as tries are read, so that a picture of all of it looks at no
try again.

There are at most 1,024 cells. When the job goes on beyond the last one, neighbors become one cell of twice the length.
Their ends are multiples of that length, so sums over whole cells are exact.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from parallelrun_core.tries.columns import Array

CELLS: Final = 1024
_FIRST_CELL_S: Final = 1 / 64
_LANES: Final = 8
_OF_LANES: Final = {"busy": "f4", "load": "f4", "tries": "u4", "failed_tries": "u4"}
_OF_ALL: Final = ("mini_batches", "items", "failed", "retried")


class TimeGrid:
    """Cells of time; each has sums for each lane, and some for all of them.

    Seconds are in the cells in which they passed; tries, items and failures in that in which the try ended.
    """

    def __init__(self) -> None:
        self.cell_s = _FIRST_CELL_S
        self.first = 0
        """How many cells lie between the epoch and the first one here."""
        self.used = 0
        """Cells from the first one to the last that has something."""
        self.of_lanes = {name: np.zeros((_LANES, CELLS), kind) for name, kind in _OF_LANES.items()}
        self.of_all = {name: np.zeros(CELLS, "i8") for name in _OF_ALL}

    @property
    def bytes(self) -> int:
        return sum(each.nbytes for each in (*self.of_lanes.values(), *self.of_all.values()))

    def restore(
        self, of_lanes: dict[str, Array], of_all: dict[str, Array], *, cell_s: float, first: int, used: int
    ) -> None:
        """Begin with the first `used` cells of another grid."""
        self.cell_s, self.first, self.used = cell_s, first, used
        for group, restored in ((self.of_lanes, of_lanes), (self.of_all, of_all)):
            for name, cells in restored.items():
                room = [(0, 0)] * (cells.ndim - 1) + [(0, CELLS - used)]
                group[name] = np.pad(cells, room).astype(group[name].dtype, copy=False)

    def add(self, begin: Array, elapsed_s: Array, load_s: Array, lane: Array, counts: dict[str, Array]) -> None:
        """Add tries whose worker and begin are known.

        Args:
            counts: for each try, what `of_all` sums up, and `failed_tries`.
        """
        if not len(begin):
            return
        end = begin + elapsed_s
        self._make_room(float(begin.min()), float(end.max()), int(lane.max()) + 1)
        at = np.floor(end / self.cell_s).astype("i8") - self.first
        low, span = int(at.min()), int(at.max() - at.min()) + 1
        for name in _OF_ALL:
            self.of_all[name][low : low + span] += np.bincount(at - low, counts[name], span).astype("i8")
        numbers, places = np.unique(lane, return_inverse=True)
        cells = places * span + at - low
        for name, weights in (("tries", None), ("failed_tries", counts["failed_tries"])):
            added = np.bincount(cells, weights, len(numbers) * span).reshape(-1, span)
            self.of_lanes[name][numbers, low : low + span] += added.astype("u4")
        self._add_seconds("busy", begin, end, lane)
        is_loaded = load_s > 0
        if is_loaded.any():
            begin, end, lane = begin[is_loaded], end[is_loaded], lane[is_loaded]
            self._add_seconds("load", begin, np.minimum(end, begin + load_s[is_loaded]), lane)

    def _add_seconds(self, name: str, begin: Array, end: Array, lane: Array) -> None:
        low = math.floor(float(begin.min()) / self.cell_s)
        high = math.floor(float(end.max()) / self.cell_s) + 1
        numbers, places = np.unique(lane, return_inverse=True)
        window = (low * self.cell_s, high * self.cell_s)
        added = seconds_in_buckets(begin, end, places, lanes=len(numbers), window=window, buckets=high - low)
        self.of_lanes[name][numbers, low - self.first : high - self.first] += added

    def _make_room(self, begin: float, end: float, lanes: int) -> None:
        """Let there be cells from `begin` to `end`, and rows for so many lanes."""
        have = len(self.of_lanes["busy"])
        if lanes > have:
            more = max(lanes, 2 * have) - have
            for name, cells in self.of_lanes.items():
                self.of_lanes[name] = np.concatenate((cells, np.zeros((more, CELLS), cells.dtype)))
        if not self.used:
            self.first = math.floor(begin / self.cell_s)
        while True:
            low = min(self.first, math.floor(begin / self.cell_s))
            high = max(self.first + self.used, math.floor(end / self.cell_s) + 1)
            if high - low <= CELLS:
                break
            self._halve()
        self._move(self.first - low)
        self.first, self.used = low, high - low

    def _halve(self) -> None:
        """Make one cell of each two."""
        is_odd = self.first % 2
        for group in (self.of_lanes, self.of_all):
            for name, cells in group.items():
                padded = np.pad(cells, [(0, 0)] * (cells.ndim - 1) + [(is_odd, is_odd)])
                merged = padded[..., 0::2] + padded[..., 1::2]
                group[name] = np.pad(merged, [(0, 0)] * (cells.ndim - 1) + [(0, CELLS - merged.shape[-1])])
        self.used = (self.used + is_odd + 1) // 2
        self.first //= 2
        self.cell_s *= 2

    def _move(self, by: int) -> None:
        """Move all cells back, so that there is room for earlier ones."""
        if not by:
            return
        for group in (self.of_lanes, self.of_all):
            for name, cells in group.items():
                group[name] = np.roll(cells, by, axis=-1)  # those that leave at the end were never used

    def seconds(self, name: str, lanes: Array, edges: Array) -> Array:
        """The seconds between each two of the edges, a row for each of these lanes; within a cell they are taken to be
        everywhere alike.

        Args:
            edges: seconds since the epoch, ascending.
        """
        cells = self.of_lanes[name][lanes].astype("f8")
        sums = np.concatenate((np.zeros((len(lanes), 1)), cells.cumsum(axis=1)), axis=1)
        at = np.clip(edges / self.cell_s - self.first, 0, CELLS)
        before = np.minimum(at.astype("i8"), CELLS - 1)
        part = at - before
        integral = sums[:, before] * (1 - part) + sums[:, before + 1] * part
        difference: Array = np.maximum(0, np.diff(integral, axis=1))
        return difference

    def tries(self, name: str, lanes: Array, begin: float, end: float) -> Array:
        """Return how many tries of these lanes ended in the cells from `begin` to `end`."""
        low = max(0, math.floor(begin / self.cell_s) - self.first)
        high = max(low, math.floor(end / self.cell_s) + 1 - self.first)
        counted: Array = self.of_lanes[name][lanes, low:high].sum(axis=1, dtype="i8")
        return counted


def seconds_in_buckets(
    begin: Array, end: Array, lane: Array, *, lanes: int, window: tuple[float, float], buckets: int
) -> Array:
    """The seconds of each bucket of the window that are in the intervals of each lane: a row for each lane.

    Each end of an interval begins, or ends, what it contributes to the part of its own bucket that follows, and to all
    buckets that follow: sums of these contributions are what one looks for, without a step for each bucket that an
    interval crosses.
    """
    bucket_s = (window[1] - window[0]) / buckets
    slots = buckets + 2
    sums = np.zeros(lanes * slots)
    for times, sign in ((begin, 1.0), (end, -1.0)):
        at = (np.clip(times, *window) - window[0]) / bucket_s
        bucket = np.minimum(at.astype("i8"), buckets)
        part = at - bucket
        slot = lane * slots + bucket
        sums += np.bincount(slot, sign * (1 - part), len(sums))
        sums += np.bincount(slot + 1, sign * part, len(sums))
    filled: Array = np.maximum(0, sums.reshape(lanes, slots)[:, :buckets].cumsum(axis=1)) * bucket_s
    return filled
