"""Throughput in time, and key figures of it."""

from __future__ import annotations

from typing import Final

import numpy as np

from parallelrun_api.tries.timeline import clock_of, lives_of
from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.answers.pictures import Figures, Throughput
from parallelrun_core.tries.columns import Array, json_number
from parallelrun_core.tries.history import History
from parallelrun_core.tries.summary import DONE
from parallelrun_core.tries.time_grid import TimeGrid
from parallelrun_core.wire.pace import overall_items_per_s, ran_s
from parallelrun_core.wire.progress import Progress

_MOST_SORTED: Final = 100_000


def throughput(history: History, points: int, *, least_items: int = 0) -> Throughput:
    """The job from its first try until now, or to its end, in at most so many buckets, each of them whole cells.

    Args:
        least_items: a bucket has as many items on average, or it is the only one.
    """
    grid, clock = history.summary.grid, clock_of(history)
    if least_items:
        points = min(points, max(1, int(grid.of_all["items"].sum()) // least_items))
    size = max(1, -(-grid.used // points))
    buckets = -(-grid.used // size)

    def by_bucket(cells: Array) -> Array:
        summed: Array = np.pad(cells, (0, buckets * size - len(cells)) if buckets * size > len(cells) else (0, 0))
        summed = summed[: buckets * size].reshape(buckets, size).sum(axis=1)
        return summed

    bucket_s = grid.cell_s * size
    lives, start = history.summary.lives, clock.start or 0.0
    return Throughput(
        start=rfc3339(clock.start) if clock.start is not None else None,
        begin_s=round(grid.first * grid.cell_s - clock.start, 6) if clock.start is not None and grid.used else 0.0,
        bucket_s=bucket_s,
        mini_batches=by_bucket(grid.of_all["mini_batches"]).tolist(),
        items=by_bucket(grid.of_all["items"]).tolist(),
        failed=by_bucket(grid.of_all["failed"]).tolist(),
        retried=by_bucket(grid.of_all["retried"]).tolist(),
        busy_workers=np.round(by_bucket(_busy_s(grid).sum(axis=0)) / bucket_s, 3).tolist(),
        first_try_s=json_number(float(lives[:, 0].min(initial=np.inf)) - start),
        last_try_s=json_number(float(lives[:, 1].max(initial=-np.inf)) - start),
        read_share=history.read_share,
    )


def figures(history: History, progress: Progress, *, started: float | None, until: float | None) -> Figures:
    """Key figures.

    Args:
        progress: of the job.
        started: when a leader began with it.
        until: when it ended, or now.
    """
    totals, clock, lives = history.summary.totals, clock_of(history), lives_of(history)
    life_s = sum(end - begin for begin, end in lives.values())
    init_s = sum(each.seconds for each in history.phases if each.is_init)
    mini_batches, items = progress.done + progress.failed, progress.items_decided
    least, middle, p95, p99, most = _quantiles(history)
    busy_s = min(totals.elapsed_s, float(_busy_s(history.summary.grid).sum()))
    in_run_s = totals.run_s + totals.load_s + sum(progress.waits_s.values())
    return Figures(
        read_share=history.read_share,
        waited_s=round(started - history.record.submitted, 3) if started is not None else None,
        first_try_s=_difference(totals.first_begin, started),
        took_s=_difference(until, started),
        nodes=len({worker.node for worker in lives}),
        workers=len(lives),
        mini_batches=mini_batches,
        failed_mini_batches=progress.failed,
        tries=totals.tries,
        failed_tries=totals.failed_tries,
        items=items,
        rows=progress.rows,
        min_run_s=least,
        median_run_s=middle,
        p95_run_s=p95,
        p99_run_s=p99,
        max_run_s=most,
        run_s=round(totals.run_s, 3),
        load_s=round(totals.load_s, 3),
        overhead_s=round(max(0.0, totals.elapsed_s - in_run_s), 3),
        init_s=round(init_s, 3),
        wasted_s=round(totals.wasted_s, 3),
        busy_share=round(min(1.0, busy_s / life_s), 4) if life_s > 0 else None,
        items_per_s=_items_per_s(progress, clock.length_s, until),
        mini_batches_per_s=_mini_batches_per_s(progress, clock.length_s, until),
    )


def _busy_s(grid: TimeGrid) -> Array:
    """Return for how long each worker was busy in each cell of time: once, whatever it had in flight."""
    busy_s: Array = np.minimum(grid.of_lanes["busy"].astype("f8"), grid.cell_s)
    return busy_s


def _items_per_s(progress: Progress, length_s: float, until: float | None) -> float | None:
    """The pace of the job's last run; of a job of an earlier release, which doesn't tell runs apart, that of all."""
    if progress.queued_at and until is not None:
        return overall_items_per_s(progress, until)
    return round(progress.items_decided / length_s, 3) if length_s > 0 else None


def _mini_batches_per_s(progress: Progress, length_s: float, until: float | None) -> float | None:
    """Over the same time as the items: one item in each mini-batch gives the same number twice."""
    if progress.queued_at and until is not None:
        ran = ran_s(progress, until)
        mini_batches = progress.decided - progress.decided_before
        return mini_batches / ran if ran > 0 and mini_batches > 0 else None
    return round(progress.decided / length_s, 3) if length_s > 0 else None


def _difference(later: float | None, earlier: float | None) -> float | None:
    return round(later - earlier, 3) if later is not None and earlier is not None else None


def _quantiles(history: History) -> list[float | None]:
    """Return the quantiles of the tries that succeeded: the least and the most of all, the others of as many as can be
    sorted at once."""
    tries, totals = history.tries, history.summary.totals
    some = slice(None, None, max(1, tries.count // _MOST_SORTED))
    run_s = tries["run_s"][some][tries["is_own"][some] & (tries["status"][some] == DONE)]
    if not len(run_s):
        return [None] * 5
    middle, p95, p99 = np.quantile(run_s, (0.5, 0.95, 0.99))
    return [json_number(float(each)) for each in (totals.min_run_s, middle, p95, p99, totals.max_run_s)]
