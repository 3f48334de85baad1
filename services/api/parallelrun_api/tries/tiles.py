"""Mini-batches in buckets of neighbors, at any zoom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from parallelrun_api.models import Tiles
from parallelrun_api.tries.history import DONE
from parallelrun_api.tries.shown import numbers

if TYPE_CHECKING:
    from collections.abc import Collection

    from parallelrun_api.models import Progress
    from parallelrun_api.tries.columns import Array
    from parallelrun_api.tries.history import History

MOST_BUCKETS: Final = 2048
_MOST_SORTED: Final = 2_000_000
"""Of more mini-batches than that, medians are those of every n-th one: sorting takes longest of all."""


def tiles(
    history: History, progress: Progress, running: Collection[int], *, first: int, end: int | None, buckets: int
) -> Tiles:
    """The mini-batches from `first` up to `end`, exclusively, in at most so many buckets.

    Args:
        progress: of the job, for those that nobody has begun.
        running: those that agents hold.
        end: moved to the last one that there is; None: that one.
    """
    total = max(progress.scheduled, history.decided_by.end)
    end = total if end is None else min(end, total)
    first = min(first, end)
    size = max(1, -(-(end - first) // max(1, buckets)))
    bounds = np.arange(first, end, size)
    sizes = np.minimum(bounds + size, end) - bounds
    counts, run_s = _counted(history, first, end, size, len(bounds))
    decided = counts["completed"] + counts["failed"]
    held = np.fromiter((each for each in running if first <= each < end), "i8")
    held = held[history.decided_by.range(first, end)[held - first] < 0]
    counts["running"] = np.bincount((held - first) // size, minlength=len(bounds))
    least, middle, most = _spread(run_s, decided)
    return Tiles(
        first=first,
        end=end,
        bucket_size=size,
        total=total,
        listing_done=progress.listing_done,
        read_share=history.read_share,
        waiting=(sizes - decided - counts["running"]).tolist(),
        median_of="all" if end - first <= _MOST_SORTED else "samples",
        running=counts["running"].tolist(),
        completed=counts["completed"].tolist(),
        failed=counts["failed"].tolist(),
        retried=counts["retried"].tolist(),
        failed_items=counts["failed_items"].tolist(),
        min_run_s=least,
        median_run_s=middle,
        max_run_s=most,
    )


def _counted(history: History, first: int, end: int, size: int, buckets: int) -> tuple[dict[str, Array], Array]:
    """Sums by bucket; and the seconds of each mini-batch, a row for each bucket, infinite where there are none."""

    def by_bucket(values: Array, filler: Any = 0) -> Array:
        whole = np.full(buckets * size, filler, values.dtype)
        whole[: len(values)] = values
        return whole.reshape(buckets, size)

    tries = history.tries
    rows = history.decided_by.range(first, end)
    is_decided = rows >= 0
    rows = np.where(is_decided, rows, 0)
    is_done = is_decided & (tries["status"][rows] == DONE) if tries.count else is_decided
    failed_items = np.where(is_decided, tries["failed_items"][rows], 0) if tries.count else is_decided
    run_s = np.where(is_decided, tries["run_s"][rows], np.float32(np.inf)) if tries.count else np.zeros(end - first)
    counts = {
        "completed": by_bucket(is_done).sum(axis=1),
        "failed": by_bucket(is_decided & ~is_done).sum(axis=1),
        "retried": by_bucket(history.has_failed_try.range(first, end)).sum(axis=1, dtype="i8"),
        "failed_items": by_bucket(failed_items).sum(axis=1, dtype="i8"),
    }
    return counts, by_bucket(run_s, np.inf)


def _spread(run_s: Array, decided: Array) -> tuple[list[float | None], ...]:
    """The least, the median and the most of each row."""
    if not run_s.size:
        return [], [], []
    step = -(-run_s.size // _MOST_SORTED)
    ordered = np.sort(run_s[:, ::step], axis=1)
    known = np.isfinite(ordered).sum(axis=1) if step > 1 else decided
    middle = ordered[np.arange(len(ordered)), np.maximum(known - 1, 0) // 2]
    most = ordered[np.arange(len(ordered)), np.maximum(known - 1, 0)]
    least = ordered[:, 0]
    if step > 1:
        least, most = run_s.min(axis=1), np.where(np.isfinite(run_s), run_s, -np.inf).max(axis=1)
    return numbers(least), numbers(middle), numbers(most)
