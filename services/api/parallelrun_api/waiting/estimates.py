"""Estimates of how long until another job gives a slot. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from parallelrun_core.wire import pace

if TYPE_CHECKING:
    from parallelrun_api.waiting.situation import Neighbour


def until_a_slot(neighbours: Iterable[Neighbour], now: float) -> float | None:
    """Return the seconds until one of these jobs gives a slot; None: nobody knows.

    A job gives one when it has ended, or at the end of a mini-batch of a worker that has worked ten times as long as
    its init() took.
    """
    estimates = [estimate for each in neighbours if (estimate := _of_one(each, now)) is not None]
    return min(estimates, default=None)


def _of_one(job: Neighbour, now: float) -> float | None:
    ends_in_s = pace.left_s(job.progress, now)
    usual_s = pace.mini_batch_s(job.progress, now)
    if usual_s is None:
        return ends_in_s
    longest_left_s = pace.longest_left_s(job.progress, now)
    next_end_s = usual_s / max(1, job.workers)  # they end one after the other
    if longest_left_s is not None:
        next_end_s = min(next_end_s, longest_left_s) if job.workers > 1 else longest_left_s
    gives_in_s = max(job.frees_in_s, next_end_s)
    return gives_in_s if ends_in_s is None else min(gives_in_s, ends_in_s)
