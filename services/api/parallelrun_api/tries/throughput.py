"""What was done in time, and key figures of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from parallelrun_api.models import Figures, Throughput
from parallelrun_api.tries.history import DONE, RETRIED, Worker
from parallelrun_api.tries.intervals import seconds_in_buckets
from parallelrun_api.tries.shown import number
from parallelrun_api.tries.timeline import clock_of
from parallelrun_api.views.shown import rfc3339

if TYPE_CHECKING:
    from parallelrun_api.tries.columns import Array
    from parallelrun_api.tries.history import History

MOST_POINTS: Final = 500


def throughput(history: History, points: int) -> Throughput:
    """The job from its start until now, or to its end, in so many buckets."""
    clock = clock_of(history)
    length_s = max(clock.length_s, 1e-3)
    tries = history.tries
    rows = np.flatnonzero(tries["is_own"] & (tries["begin"] > 0))
    begin = tries["begin"][rows] - (clock.start or 0.0)
    end = begin + tries["elapsed_s"][rows]
    bucket = np.clip((end / length_s * points).astype("i8"), 0, points - 1)
    is_retried = tries["status"][rows] == RETRIED
    is_failed = ~is_retried & (tries["status"][rows] != DONE)

    def counted(weights: Array) -> list[int]:
        counts: list[int] = np.bincount(bucket, weights, points).astype("i8").tolist()
        return counts

    lane = np.zeros(len(rows), "i8")
    busy = seconds_in_buckets(begin, end, lane, lanes=1, window=(0.0, length_s), buckets=points)[0]
    return Throughput(
        start=rfc3339(clock.start) if clock.start is not None else None,
        bucket_s=length_s / points,
        mini_batches=counted(~is_retried),
        items=counted(np.where(is_retried, 0, tries["items"][rows])),
        failed=counted(is_failed),
        retried=counted(is_retried),
        busy_workers=np.round(busy / (length_s / points), 3).tolist(),
        read_share=history.read_share,
    )


def figures(history: History, *, started: float | None, until: float | None) -> Figures:
    """Key figures.

    Args:
        started: when a leader began with the job.
        until: when it ended, or now.
    """
    tries = history.tries
    rows = np.flatnonzero(tries["is_own"])
    status, run_s = tries["status"][rows], tries["run_s"][rows]
    took_s = until - started if started is not None and until is not None else None
    total = {name: float(tries[name][rows].sum(dtype="f8")) for name in ("run_s", "load_s", "elapsed_s")}
    decided = history.decided_by.range(0, history.decided_by.end)
    decided = decided[decided >= 0]
    items = int(tries["items"][decided].sum(dtype="i8"))
    clock = clock_of(history)
    life_s = _life_s(history, rows)
    init_s = sum(each.seconds for each in history.phases if each.is_init)
    least, middle, p95, p99, most = _quantiles(run_s[status == DONE])
    first = tries["begin"][rows][tries["begin"][rows] > 0]
    workers = {*history.workers, *(Worker(each.node, each.process) for each in history.phases)}
    return Figures(
        read_share=history.read_share,
        waited_s=round(started - history.record.submitted, 3) if started is not None else None,
        first_try_s=round(float(first.min()) - started, 3) if len(first) and started is not None else None,
        took_s=round(took_s, 3) if took_s is not None else None,
        nodes=len({worker.node for worker in workers}),
        workers=len(workers),
        mini_batches=len(decided),
        failed_mini_batches=int((tries["status"][decided] != DONE).sum()),
        tries=len(rows),
        failed_tries=int((status != DONE).sum()),
        items=items,
        rows=int(tries["rows"][decided].sum(dtype="i8")),
        min_run_s=least,
        median_run_s=middle,
        p95_run_s=p95,
        p99_run_s=p99,
        max_run_s=most,
        run_s=round(total["run_s"], 3),
        load_s=round(total["load_s"], 3),
        overhead_s=round(max(0.0, total["elapsed_s"] - total["run_s"] - total["load_s"]), 3),
        init_s=round(init_s, 3),
        wasted_s=round(float(tries["elapsed_s"][rows][status != DONE].sum(dtype="f8")), 3),
        busy_share=round(min(1.0, total["elapsed_s"] / life_s), 4) if life_s > 0 else None,
        items_per_s=number(items / clock.length_s, 3) if clock.length_s > 0 else None,
        mini_batches_per_s=number(len(decided) / clock.length_s, 3) if clock.length_s > 0 else None,
    )


def _quantiles(run_s: Array) -> list[float | None]:
    if not len(run_s):
        return [None] * 5
    return [number(float(each)) for each in np.quantile(run_s, (0, 0.5, 0.95, 0.99, 1))]


def _life_s(history: History, rows: Array) -> float:
    """The seconds that all workers were there: from the begin of the first to the end of the last thing they did."""
    tries = history.tries
    rows = rows[tries["lane"][rows] >= 0]
    lane = tries["lane"][rows]
    firsts, lasts = np.full(len(history.workers), np.inf), np.full(len(history.workers), -np.inf)
    np.minimum.at(firsts, lane, tries["begin"][rows])
    np.maximum.at(lasts, lane, tries["begin"][rows] + tries["elapsed_s"][rows])
    for phase in history.phases:
        at = history.workers.get(Worker(phase.node, phase.process))
        if at is not None:
            firsts[at] = min(firsts[at], phase.begin)
            lasts[at] = max(lasts[at], phase.begin + phase.seconds)
    is_known = np.isfinite(firsts)
    return float((lasts[is_known] - firsts[is_known]).sum())
