"""Replay: the time that mini-batches take together on some workers, if each worker takes the next one when it is free.

That is list scheduling (Graham, 1969), and what the engine does: its workers lease mini-batches in the order of the
manifest. So the time of a job under other settings is computed from the measured times. It is at least
max(Σd ÷ W, max d), and at most Σd ÷ W + max d.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import Final

import numpy as np

from parallelrun_core.adviser.evidence import Floats, Ints

_EXACT: Final = 20_000
"""So many mini-batches at the end are scheduled one by one; those before fill their workers evenly."""
_SMALL: Final = 0.005
"""Provided that each of those is at most this share of the whole: no schedule differs by more than one mini-batch."""
_MOST_PIECES: Final = 200_000
"""No schedule takes more steps, so that none takes longer than some tenths of a second."""


@dataclass(frozen=True)
class Runs:
    """Mini-batches in the order in which they are taken, equal ones in a row together: a job that is divided into a
    billion of them takes no more memory than it does now."""

    seconds: Floats
    counts: Ints

    @property
    def total_s(self) -> float:
        return float((self.seconds * self.counts).sum())  # `@` wakes BLAS' threads, which take ten times the CPU


def makespan(durations: Floats | Runs, ready: Sequence[float], *, each: float = 1.0) -> float:
    """Return when the last mini-batch ends, in seconds from where `ready` counts; the first `ready` if there is none.

    Takes some hundredths of a second for any number of mini-batches, and memory for 200,000. The error is below 0.5 %
    where there are more than 20,000; on more than a thousand workers, if one of many is much longer than the others, up
    to the number of workers / 200,000.

    Args:
        durations: in the order in which mini-batches are taken.
        ready: when each worker can begin.
        each: how many mini-batches each one stands for: the others are like these, and come before them.

    Raises:
        ValueError: there is no worker.
    """
    if not len(ready):
        raise ValueError("mini-batches can't be scheduled without a worker")
    runs = durations if isinstance(durations, Runs) else Runs(durations, np.ones(len(durations), dtype=np.int64))
    lanes = np.asarray(ready, dtype=np.float64)
    if each > 1.0:
        lanes = np.maximum(lanes, _level(lanes, (each - 1.0) * runs.total_s))
    filled_s, steps = _steps(runs, len(lanes), runs.total_s * each)
    if filled_s:
        lanes = np.maximum(lanes, _level(lanes, filled_s))
    free = lanes.tolist()
    heapify(free)
    for seconds in steps.tolist():
        heapreplace(free, free[0] + seconds)
    return float(max(free) if len(steps) else min(free))


def _steps(runs: Runs, lanes: int, total_s: float) -> tuple[float, Floats]:
    """Return what is scheduled one by one, after how many seconds that just fill the workers."""
    before = int(runs.counts.sum()) - _EXACT
    if before <= 0:
        return 0.0, np.repeat(runs.seconds, runs.counts)
    ends = np.cumsum(runs.counts)
    first = int(np.searchsorted(ends, before, side="right"))  # the run with the first one of the last 20,000
    small = _SMALL * total_s / lanes
    if float(runs.seconds[: first + 1].max()) <= small:
        counts = runs.counts[first:].copy()
        counts[0] = ends[first] - before
        last = np.repeat(runs.seconds[first:], counts)
        return max(0.0, runs.total_s - float(last.sum())), last
    return 0.0, _joined_up_to(runs, max(small, runs.total_s / _MOST_PIECES))


def _joined_up_to(runs: Runs, most_s: float) -> Floats:
    """Neighbours that are short count as one, of this length."""
    counts = np.minimum(runs.counts, np.ceil(runs.seconds * runs.counts / most_s)).astype(np.int64)
    counts[runs.seconds > most_s] = runs.counts[runs.seconds > most_s]
    counts = np.maximum(counts, runs.counts > 0)
    pieces = np.repeat(runs.seconds * runs.counts / np.maximum(counts, 1), counts)
    is_long = pieces > most_s
    number = np.floor(np.cumsum(np.where(is_long, 0.0, pieces)) / most_s)
    begins = np.diff(number, prepend=-1.0) > 0
    begins |= is_long
    begins[1:] |= is_long[:-1]
    return np.add.reduceat(pieces, np.flatnonzero(begins))


def _level(lanes: Floats, work: float) -> float:
    """Up to when work fills workers that can be divided at will, as water fills a vessel."""
    levels = np.sort(lanes)
    counts = np.arange(1, len(levels) + 1)
    heights = (work + np.cumsum(levels)) / counts
    above = np.append(levels[1:], np.inf)
    return float(heights[int(np.argmax(heights <= above))])


def lower_bound(durations: Floats, lanes: int, *, each: float = 1.0) -> float:
    """Return what no schedule on so many workers is faster than: max(Σd ÷ W, max d)."""
    return max(each * float(durations.sum()) / lanes, float(durations.max())) if len(durations) else 0.0


def joined(work: Floats, factor: int) -> Floats:
    """The work of mini-batches if each were as large as `factor` neighbours; the last one may be smaller."""
    return np.add.reduceat(work, np.arange(0, len(work), factor)) if len(work) else work


def split(work: Floats, items: Ints, parts: int, fixed_s: float = 0.0, excess: Floats | None = None) -> Runs:
    """Mini-batches if each were divided into `parts`, or into its items, if it has fewer.

    Args:
        fixed_s: what each of them costs beside its work.
        excess: how much of each one's work is in a single item, and so in a single part.
    """
    counts = np.minimum(np.maximum(items, 1), parts)
    whole = excess if excess is not None else np.zeros_like(work)
    seconds = (work - whole) / counts + fixed_s
    return Runs(
        np.stack((seconds + whole, seconds), axis=1).ravel(), np.stack((counts > 0, counts - 1), axis=1).ravel()
    )


def and_then(runs: Runs, durations: Floats) -> Runs:
    """More of them, after these."""
    ones = np.ones(len(durations), dtype=np.int64)
    return Runs(np.append(runs.seconds, durations), np.append(runs.counts, ones))
