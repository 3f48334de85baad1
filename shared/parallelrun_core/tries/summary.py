"""The summary of a job's tries: kept as they are read, so that nobody looks at them again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from parallelrun_core.tries.levels import Levels
from parallelrun_core.tries.time_grid import TimeGrid

if TYPE_CHECKING:
    from parallelrun_core.tries.columns import Array, Columns

DONE, FAILED, RETRIED, LOST = range(4)
"""How a try ended: `status` of its row."""
SLOWEST: Final = 20
"""Tries of each chunk that took longest, which are remembered."""

_NONE: Final = np.zeros(0, "i8")


@dataclass(slots=True)
class Totals:
    """Sums over the tries of the job itself."""

    tries: int = 0
    failed_tries: int = 0
    run_s: float = 0.0
    load_s: float = 0.0
    elapsed_s: float = 0.0
    wasted_s: float = 0.0
    """`elapsed_s` of those that failed."""
    first_begin: float | None = None
    min_run_s: float = math.inf
    """The shortest run() of tries that succeeded."""
    max_run_s: float = -math.inf


class Summary:
    """Sums over rows that are added one chunk after the other."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.grid = TimeGrid()
        self.levels = Levels()
        self.lives = np.zeros((0, 2))
        """When each lane began its first try, and ended its last one, in seconds since the epoch."""
        self._rows: list[tuple[int, int]] = []
        self._times: list[tuple[float, float]] = []
        self._slowest: list[Array] = []

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return self.grid.bytes + self.levels.bytes + self.lives.nbytes + 300 * len(self._rows)

    def add(self, tries: Columns, first: int) -> None:
        """Add the rows from `first` on."""
        part = {name: tries[name][first:] for name in tries.names}
        is_own, status = part["is_own"], part["status"]
        self._add_totals(part, is_own)
        is_timed = is_own & (part["lane"] >= 0) & (part["begin"] > 0)
        begin, elapsed_s, lane = (part[name][is_timed] for name in ("begin", "elapsed_s", "lane"))
        if not len(begin):
            return
        is_retry = status[is_timed] == RETRIED
        has_failed = status[is_timed] != DONE
        counts = {
            "mini_batches": ~is_retry,
            "items": np.where(is_retry, 0, part["items"][is_timed]),
            "failed": has_failed & ~is_retry,
            "retried": is_retry,
            "failed_tries": has_failed,
        }
        self.grid.add(begin, elapsed_s, part["load_s"][is_timed], lane, counts)
        end = begin + elapsed_s
        self._add_lives(lane, begin, end)
        self._rows.append((first, tries.count))
        self._times.append((float(begin.min()), float(end.max())))
        run_s = np.where(is_timed, part["run_s"], -1)
        most = min(SLOWEST, len(begin))
        self._slowest.append(first + np.argpartition(-run_s, most - 1)[:most])

    def chunks(self) -> tuple[Array, Array, Array]:
        """Return the first row of each chunk of rows and the one after its last, its first begin and last end, and the
        rows that took longest: a row for each chunk, filled up with -1."""
        slowest = np.full((len(self._slowest), SLOWEST), -1, "i8")
        for at, rows in enumerate(self._slowest):
            slowest[at, : len(rows)] = rows
        return np.array(self._rows, "i8").reshape(-1, 2), np.array(self._times).reshape(-1, 2), slowest

    def restore(self, totals: Totals, lives: Array, chunks: tuple[Array, Array, Array]) -> None:
        """Begin with these totals and lives, and with what `chunks` has returned."""
        self.totals, self.lives = totals, lives.copy()
        rows, times, slowest = chunks
        self._rows = [(first, end) for first, end in rows.tolist()]
        self._times = [(begin, end) for begin, end in times.tolist()]
        self._slowest = [each[each >= 0] for each in slowest]

    def rows_between(self, begin: float, end: float) -> Array:
        """Rows among which are all that were under way then."""
        return np.concatenate([_NONE, *(np.arange(*self._rows[chunk]) for chunk in self._chunks(begin, end))])

    def slowest_between(self, begin: float, end: float) -> Array:
        """Rows among which are those that took longest of all that were under way then, and of their chunks."""
        return np.concatenate([_NONE, *(self._slowest[chunk] for chunk in self._chunks(begin, end))])

    def count_between(self, begin: float, end: float) -> int:
        """Return how many rows `rows_between` has."""
        return sum(self._rows[chunk][1] - self._rows[chunk][0] for chunk in self._chunks(begin, end))

    def _chunks(self, begin: float, end: float) -> list[int]:
        times = np.array(self._times).reshape(-1, 2)
        chosen: list[int] = np.flatnonzero((times[:, 0] < end) & (times[:, 1] > begin)).tolist()
        return chosen

    def _add_totals(self, part: dict[str, Array], is_own: Array) -> None:
        totals, has_failed = self.totals, part["status"] != DONE
        totals.tries += int(is_own.sum())
        totals.failed_tries += int((is_own & has_failed).sum())
        totals.run_s += float(part["run_s"][is_own].sum(dtype="f8"))
        totals.load_s += float(part["load_s"][is_own].sum(dtype="f8"))
        totals.elapsed_s += float(part["elapsed_s"][is_own].sum(dtype="f8"))
        totals.wasted_s += float(part["elapsed_s"][is_own & has_failed].sum(dtype="f8"))
        done_s = part["run_s"][is_own & ~has_failed]
        totals.min_run_s = min(totals.min_run_s, float(done_s.min(initial=np.inf)))
        totals.max_run_s = max(totals.max_run_s, float(done_s.max(initial=-np.inf)))
        begin = part["begin"][is_own & (part["begin"] > 0)]
        if len(begin):
            totals.first_begin = min(float(begin.min()), totals.first_begin or np.inf)

    def _add_lives(self, lane: Array, begin: Array, end: Array) -> None:
        if (more := int(lane.max()) + 1 - len(self.lives)) > 0:
            self.lives = np.concatenate((self.lives, np.tile([np.inf, -np.inf], (more, 1))))
        order = np.argsort(lane, kind="stable")
        numbers, firsts = np.unique(lane[order], return_index=True)
        lives = self.lives[numbers]
        lives[:, 0] = np.minimum(lives[:, 0], np.minimum.reduceat(begin[order], firsts))
        lives[:, 1] = np.maximum(lives[:, 1], np.maximum.reduceat(end[order], firsts))
        self.lives[numbers] = lives
