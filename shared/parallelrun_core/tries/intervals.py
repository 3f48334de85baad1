"""Coverage of buckets of time by intervals, whatever their number and length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from parallelrun_core.tries.columns import Array


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
