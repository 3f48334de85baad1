"""The workers of a job in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.answers.pictures import DoingNow, Lane, RunningTry, SlowTry, Timeline, TrySpans
from parallelrun_core.tries.columns import Array, json_number
from parallelrun_core.tries.history import History, RecordedWorker
from parallelrun_core.tries.summary import DONE, FAILED, RETRIED, SLOWEST
from parallelrun_core.tries.time_grid import seconds_in_buckets
from parallelrun_core.wire.at_work import NodeWork, WorkerAtWork

_MOST_SPANS: Final = 2000
"""Tries that are shown one by one, of all lanes of a page."""
_MOST_EXACT: Final = 100_000
"""Tries of a window that are looked at one by one: a window with more is made of cells of time."""
_MOST_SORTED: Final = 100_000
_OUTCOMES: Final[dict[int, Literal["completed", "failed", "retried"]]] = {
    DONE: "completed",
    FAILED: "failed",
    RETRIED: "retried",
}

Lives = dict[RecordedWorker, tuple[float, float]]
"""When each worker began its first `init()` or try for the job, and ended its last one: seconds since the epoch."""


@dataclass(frozen=True, kw_only=True)
class JobClock:
    """The times of a job: `start` is when the first worker began, the others are seconds since then."""

    start: float | None
    """Seconds since the epoch; None: no worker has begun."""
    length_s: float


@dataclass(frozen=True, kw_only=True)
class TimeWindow:
    begin_s: float = 0.0
    end_s: float | None = None
    """None: the end of what there is."""
    buckets: int = 200
    skip: int = 0
    """Lanes of the pages before."""
    lanes: int = 50


class _Bounds(NamedTuple):
    """The begin and end of a window, in seconds since the job's first worker began."""

    begin_s: float
    end_s: float


class _LaneSums(NamedTuple):
    """Sums of what workers did in a window, a row for each worker; seconds also by bucket."""

    busy_s: Array
    load_s: Array
    tries: Array
    failed_tries: Array


def clock_of(history: History) -> JobClock:
    """The first begin and the last end of anything that a worker did for the job."""
    return _clock(lives_of(history))


def _clock(lives: Lives) -> JobClock:
    start = min((begin for begin, _ in lives.values()), default=None)
    return JobClock(start=start, length_s=max(end for _, end in lives.values()) - start if start is not None else 0.0)


def lives_of(history: History) -> Lives:
    """Return when each worker began its first `init()` or try for the job, and ended its last one: seconds since the
    epoch."""
    lives_by_lane = history.summary.lives
    lives = {
        worker: (float(lives_by_lane[lane, 0]), float(lives_by_lane[lane, 1]))
        for worker, lane in history.workers.items()
        if lane < len(lives_by_lane) and np.isfinite(lives_by_lane[lane, 0])
    }
    for phase in history.phases:
        worker, end = RecordedWorker(phase.node, phase.process), phase.begin + phase.seconds
        begin, last = lives.get(worker, (phase.begin, end))
        lives[worker] = min(begin, phase.begin), max(last, end)
    return lives


@dataclass(frozen=True, kw_only=True)
class LiveWorkers:
    """The workers of a running job as they are now."""

    nodes: Mapping[str, NodeWork]
    now: float
    """Seconds since the epoch."""

    def workers(self) -> dict[RecordedWorker, WorkerAtWork]:
        return {
            RecordedWorker(node, each.process): each for node, report in self.nodes.items() for each in report.workers
        }

    def lives(self, recorded: Lives) -> Lives:
        """Return these lives, with those of present workers until now."""
        lives = dict(recorded)
        for worker, each in self.workers().items():
            begin = min([each.since, *(attempt.began for attempt in each.tries)])
            lives[worker] = min(begin, lives.get(worker, (begin, 0.0))[0]), self.now
        return lives


NOBODY: Final = LiveWorkers(nodes={}, now=0.0)
"""Of a job that has ended."""


def timeline(history: History, window: TimeWindow, live: LiveWorkers = NOBODY) -> Timeline:
    """The lanes of a page, in a window of time."""
    lives = live.lives(lives_of(history))
    clock = _clock(lives)
    begin_s = max(0.0, min(window.begin_s, clock.length_s))
    end_s = clock.length_s if window.end_s is None else max(begin_s, min(window.end_s, clock.length_s))
    end_s = max(end_s, begin_s + 1e-3)
    workers = sorted(lives)
    view = _View(history, clock.start or 0.0, _Bounds(begin_s, end_s), window.buckets)
    return Timeline(
        start=rfc3339(clock.start) if clock.start is not None else None,
        length_s=round(clock.length_s, 3),
        begin_s=begin_s,
        end_s=end_s,
        bucket_s=(end_s - begin_s) / window.buckets,
        resolution_s=view.resolution_s,
        lanes=view.lanes(workers[window.skip : window.skip + window.lanes], lives, live),
        preparing=[node for node, report in live.nodes.items() if report.preparing],
        lanes_total=len(workers),
        slowest=view.slowest(),
        median_run_s=view.median_run_s,
        read_share=history.read_share,
    )


class _View:
    """A window of time. If there are few enough tries in it, it looks at each; else at cells of time."""

    def __init__(self, history: History, start: float, window: _Bounds, buckets: int) -> None:
        self._history = history
        self._start = start
        self._window = window
        self._buckets = buckets
        times = (start + window.begin_s, start + window.end_s)
        self._is_exact = history.summary.count_between(*times) <= _MOST_EXACT
        self.resolution_s = 0.0 if self._is_exact else history.summary.grid.cell_s
        self.median_run_s = median_run_s(history)
        self._rows = self._in_window(history.summary.rows_between(*times)) if self._is_exact else np.zeros(0, "i8")
        self._slowest = self._in_window(history.summary.slowest_between(*times))

    def _in_window(self, rows: Array) -> Array:
        tries = self._history.tries
        begin = tries["begin"][rows] - self._start
        is_there = (begin < self._window.end_s) & (begin + tries["elapsed_s"][rows] > self._window.begin_s)
        is_there &= tries["is_own"][rows] & (tries["lane"][rows] >= 0) & (tries["begin"][rows] > 0)
        chosen: Array = rows[is_there]
        return chosen

    def lanes(self, workers: list[RecordedWorker], lives: Lives, live: LiveWorkers) -> list[Lane]:
        present = live.workers()
        sums = self._sums_of_rows(workers) if self._is_exact else self._sums_of_cells(workers)
        init_s = self._of_phases({worker: at for at, worker in enumerate(workers)})
        spans = self._spans(workers) if len(self._rows) <= _MOST_SPANS and self._is_exact else {}
        return [
            Lane(
                node=worker.node,
                process=worker.process,
                begin_s=round(lives[worker][0] - self._start, 6),
                end_s=round(lives[worker][1] - self._start, 6),
                tries=int(sums.tries[at]),
                failed_tries=int(sums.failed_tries[at]),
                init=_rounded(init_s[at]),
                load=_rounded(sums.load_s[at]),
                run=_rounded(np.maximum(0, sums.busy_s[at] - sums.load_s[at])),
                spans=spans.get(worker),
                now=self._now(present[worker], live.now) if worker in present else None,
            )
            for at, worker in enumerate(workers)
        ]

    def _now(self, worker: WorkerAtWork, now: float) -> DoingNow:
        return DoingNow(
            doing=worker.doing,
            since_s=round(worker.since - self._start, 3),
            in_flight=max(worker.in_flight, len(worker.tries)),
            tries=[
                RunningTry(
                    mini_batch=each.mini_batch,
                    number=each.number,
                    items=each.items or None,
                    begin_s=round(each.began - self._start, 3),
                    load_s=round(each.loaded - each.began, 3) if each.loaded else None,
                    times_median=round((now - each.loaded) / self.median_run_s, 1)
                    if each.loaded and self.median_run_s
                    else None,
                )
                for each in worker.tries
            ],
        )

    def slowest(self) -> list[SlowTry]:
        """The slowest tries of the window."""
        tries, median = self._history.tries, self.median_run_s or 0.0
        run_s = tries["run_s"][self._slowest]
        names = list(self._history.workers)
        rows = []
        for row in self._slowest[np.argsort(-run_s, kind="stable")[:SLOWEST]].tolist():
            worker, slow_s = names[int(tries["lane"][row])], float(tries["run_s"][row])
            rows.append(
                SlowTry(
                    mini_batch=int(tries["mini_batch"][row]),
                    node=worker.node,
                    process=worker.process,
                    begin_s=round(float(tries["begin"][row]) - self._start, 6),
                    run_s=round(slow_s, 6),
                    times_median=round(slow_s / median, 2) if median > 0 else None,
                )
            )
        return rows

    def _sums_of_rows(self, workers: list[RecordedWorker]) -> _LaneSums:
        tries, count = self._history.tries, len(workers)
        worker_of_row = self._places(workers)[tries["lane"][self._rows]]
        is_shown = worker_of_row >= 0
        rows, worker = self._rows[is_shown], worker_of_row[is_shown]
        begin = tries["begin"][rows] - self._start
        end = begin + tries["elapsed_s"][rows]
        loaded = np.minimum(end, begin + tries["load_s"][rows])
        return _LaneSums(
            busy_s=self._in_buckets(begin, end, worker, count),
            load_s=self._in_buckets(begin, loaded, worker, count),
            tries=np.bincount(worker, minlength=count),
            failed_tries=np.bincount(worker, tries["status"][rows] != DONE, minlength=count),
        )

    def _sums_of_cells(self, workers: list[RecordedWorker]) -> _LaneSums:
        grid, workers_with_lane = self._history.summary.grid, self._history.workers
        # Those that only had an init() have no lane: they get that of somebody else, times nothing.
        lanes = np.array([workers_with_lane.get(worker, 0) for worker in workers], "i8")
        has_lane = np.array([worker in workers_with_lane for worker in workers], "i8")
        edges = self._start + np.linspace(*self._window, self._buckets + 1)
        return _LaneSums(
            busy_s=grid.seconds("busy", lanes, edges) * has_lane[:, None],
            load_s=grid.seconds("load", lanes, edges) * has_lane[:, None],
            tries=grid.tries("tries", lanes, edges[0], edges[-1]) * has_lane,
            failed_tries=grid.tries("failed_tries", lanes, edges[0], edges[-1]) * has_lane,
        )

    def _places(self, workers: list[RecordedWorker]) -> Array:
        """Return the place of each lane among these workers, by the number of the lane; -1: it is not among them."""
        places = np.full(len(self._history.workers) + 1, -1)
        for at, worker in enumerate(workers):
            if worker in self._history.workers:
                places[self._history.workers[worker]] = at
        return places

    def _in_buckets(self, begin: Array, end: Array, lane: Array, lanes: int) -> Array:
        return seconds_in_buckets(begin, end, lane, lanes=lanes, window=self._window, buckets=self._buckets)

    def _of_phases(self, numbers: dict[RecordedWorker, int]) -> Array:
        inits = [
            each for each in self._history.phases if each.is_init and RecordedWorker(each.node, each.process) in numbers
        ]
        begin = np.array([each.begin for each in inits]) - self._start
        lane = np.array([numbers[RecordedWorker(each.node, each.process)] for each in inits], "i8")
        return self._in_buckets(begin, begin + [each.seconds for each in inits], lane, len(numbers))

    def _spans(self, workers: list[RecordedWorker]) -> dict[RecordedWorker, TrySpans]:
        """The tries of each of these workers, by their begin."""
        tries = self._history.tries
        rows = self._rows[np.argsort(tries["begin"][self._rows], kind="stable")]
        worker_of_row = self._places(workers)[tries["lane"][rows]]
        return {worker: self._spans_of(rows[worker_of_row == at]) for at, worker in enumerate(workers)}

    def _spans_of(self, rows: Array) -> TrySpans:
        tries = self._history.tries
        values: dict[str, Any] = {name: _rounded(tries[name][rows]) for name in ("load_s", "run_s", "elapsed_s")}
        return TrySpans(
            mini_batch=tries["mini_batch"][rows].tolist(),
            begin_s=_rounded(tries["begin"][rows] - self._start),
            outcome=[_OUTCOMES[each] for each in tries["status"][rows].tolist()],
            **values,
        )


def median_run_s(history: History) -> float | None:
    """Return the median of all tries, or of as many of them as can be sorted at once."""
    run_s = history.tries["run_s"]
    run_s = run_s[:: max(1, len(run_s) // _MOST_SORTED)]
    return json_number(float(np.median(run_s))) if len(run_s) else None


def _rounded(values: Array) -> list[float]:
    rounded: list[float] = np.round(values.astype("f8"), 6).tolist()
    return rounded
