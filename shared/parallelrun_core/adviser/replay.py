"""How long mini-batches take together on some workers, if each worker takes the next one when it is free.

That is list scheduling (Graham, 1969), and what the engine does: its workers lease mini-batches in the order of the
manifest. So the time of a job under other settings is computed from the measured times. It is at least
max(Σd ÷ W, max d), and at most Σd ÷ W + max d.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace
from typing import Final

import numpy as np

from parallelrun_core.adviser.evidence import Floats, Ints

_EXACT: Final = 20_000
"""So many mini-batches at the end are scheduled one by one; those before fill their workers evenly."""
_SMALL: Final = 0.005
"""Provided that each of those is at most this share of the whole: no schedule differs by more than one mini-batch."""


def makespan(durations: Floats, ready: Sequence[float]) -> float:
    """When the last mini-batch ends, in seconds from where `ready` counts; the first `ready` if there is none.

    Takes a hundredth of a second for any number of mini-batches, with an error below 0.5 % where there are more than
    20,000; longer, and without an error, if one of many is much longer than the others.

    Args:
        durations: in the order in which mini-batches are taken.
        ready: when each worker can begin.

    Raises:
        ValueError: there is no worker.
    """
    if not len(ready):
        raise ValueError("mini-batches can't be scheduled without a worker")
    lanes = np.asarray(ready, dtype=np.float64)
    bulk = len(durations) - _EXACT
    if bulk > 0 and float(durations[:bulk].max()) <= _SMALL * float(durations.sum()) / len(lanes):
        lanes = np.maximum(lanes, _level(lanes, float(durations[:bulk].sum())))
        durations = durations[bulk:]
    free = lanes.tolist()
    heapify(free)
    for seconds in durations.tolist():
        heapreplace(free, free[0] + seconds)
    return float(max(free) if len(durations) else min(free))


def makespan_by_node(durations: Floats, ready: Sequence[float], factors: Sequence[float]) -> float:
    """The same where workers differ in speed: one with factor 2 takes twice as long for everything."""
    free = [(at, lane) for lane, at in enumerate(ready)]
    heapify(free)
    end = min(ready)
    for seconds in durations.tolist():
        at, lane = free[0]
        done = at + seconds * factors[lane]
        end = max(end, done)
        heapreplace(free, (done, lane))
    return end


def _level(lanes: Floats, work: float) -> float:
    """Up to when work fills workers that can be divided at will, as water fills a vessel."""
    levels = np.sort(lanes)
    counts = np.arange(1, len(levels) + 1)
    heights = (work + np.cumsum(levels)) / counts
    above = np.append(levels[1:], np.inf)
    return float(heights[int(np.argmax(heights <= above))])


def lower_bound(durations: Floats, lanes: int) -> float:
    """What no schedule on so many workers is faster than: max(Σd ÷ W, max d)."""
    return max(float(durations.sum()) / lanes, float(durations.max())) if len(durations) else 0.0


def joined(work: Floats, factor: int) -> Floats:
    """The work of mini-batches if each were as large as `factor` neighbours; the last one may be smaller."""
    return np.add.reduceat(work, np.arange(0, len(work), factor)) if len(work) else work


def split(work: Floats, items: Ints, parts: int, excess: Floats | None = None) -> Floats:
    """The work of mini-batches if each were divided into `parts`, or into its items, if it has fewer.

    Args:
        excess: how much of each one's work is in a single item, and so in a single part.
    """
    counts = np.minimum(np.maximum(items, 1), parts)
    whole = excess if excess is not None else np.zeros_like(work)
    divided = np.repeat((work - whole) / counts, counts)
    first = np.cumsum(counts) - counts
    divided[first] += whole
    return divided
