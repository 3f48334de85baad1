"""Mini-batches in buckets of neighbors, at any zoom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from parallelrun_core.answers.pictures import Tiles
from parallelrun_core.tries.columns import json_numbers
from parallelrun_core.tries.levels import LEAST_SIZE
from parallelrun_core.tries.summary import DONE

if TYPE_CHECKING:
    from collections.abc import Collection

    from parallelrun_core.tries.columns import Array
    from parallelrun_core.tries.history import History
    from parallelrun_core.tries.levels import Sums
    from parallelrun_core.wire.progress import Progress

_MOST_SORTED: Final = 4096
"""Of larger buckets, medians are those of every n-th mini-batch: sorting takes longest of all."""


def tiles(
    history: History, progress: Progress, running: Collection[int], *, first: int, end: int | None, buckets: int
) -> Tiles:
    """The mini-batches from `first` up to `end`, exclusively, in at most so many buckets.

    Sizes of buckets are powers of two. Those of 64 and more begin at multiples of their size: `first` is moved back.

    Args:
        progress: of the job, for those that nobody has begun.
        running: those that agents hold.
        end: moved to the last one that there is; None: that one.
    """
    total = max(progress.scheduled, history.decided_by.end)
    end = total if end is None else min(end, total)
    first = min(first, end)
    size = _size(first, end, buckets)
    if size >= LEAST_SIZE:
        first, end = first // size * size, min(total, -(-end // size) * size)
        level = history.summary.levels.of(size)
        sums = level.sums(
            first // size, -(-end // size), lambda low, high: _summed(history, low * size, size, high - low)
        )
    else:
        sums = _summed(history, first, size, -(-(end - first) // size))
    bounds = np.arange(first, end, size)
    in_flight = np.fromiter((each for each in running if first <= each < end), "i8")
    in_flight = in_flight[history.decided_by.range(first, end)[in_flight - first] < 0]
    in_buckets = np.bincount((in_flight - first) // size, minlength=len(bounds))
    undecided = np.minimum(bounds + size, end) - bounds - sums["completed"] - sums["failed"]
    return Tiles(
        first=first,
        end=end,
        bucket_size=size,
        total=total,
        listing_done=progress.listing_done,
        read_share=history.read_share,
        waiting=(undecided - in_buckets).tolist(),
        running=in_buckets.tolist(),
        completed=sums["completed"].tolist(),
        failed=sums["failed"].tolist(),
        retried=sums["retried"].tolist(),
        failed_items=sums["failed_items"].tolist(),
        min_run_s=json_numbers(sums["min_run_s"]),
        median_run_s=json_numbers(sums["median_run_s"]),
        max_run_s=json_numbers(sums["max_run_s"]),
        median_of="all" if size <= _MOST_SORTED else "samples",
    )


def _size(first: int, end: int, buckets: int) -> int:
    """The size of at most so many buckets that have all of this."""
    size = 1
    while -(-end // size) - first // size > max(1, buckets):
        size *= 2
    return size


def _summed(history: History, first: int, size: int, buckets: int) -> Sums:
    """So many buckets from `first` on, looked at one by one."""
    tries, shape = history.tries, (buckets, size)
    rows = history.decided_by.range(first, first + buckets * size).reshape(shape)
    is_decided = rows >= 0
    status, failed_items, seconds = (
        tries[name][rows] if tries.count else np.zeros(shape, "u1") for name in ("status", "failed_items", "run_s")
    )
    is_done = is_decided & (status == DONE)
    run_s = np.where(is_decided, seconds, np.inf).astype("f4")
    decided = is_decided.sum(axis=1)
    return {
        "completed": is_done.sum(axis=1),
        "failed": decided - is_done.sum(axis=1),
        "retried": history.has_failed_try.range(first, first + buckets * size).reshape(shape).sum(axis=1, dtype="i8"),
        "failed_items": np.where(is_decided, failed_items, 0).sum(axis=1, dtype="i8"),
        "min_run_s": run_s.min(axis=1, initial=np.inf),
        "median_run_s": _medians(run_s),
        "max_run_s": np.where(is_decided, run_s, -np.inf).max(axis=1, initial=-np.inf),
    }


def _medians(run_s: Array) -> Array:
    """The median of what is finite in each row, the lower one of two."""
    ordered = np.sort(run_s[:, :: max(1, run_s.shape[1] // _MOST_SORTED)], axis=1)
    counts = np.isfinite(ordered).sum(axis=1)
    medians: Array = ordered[np.arange(len(ordered)), np.maximum(counts - 1, 0) // 2]
    return medians
