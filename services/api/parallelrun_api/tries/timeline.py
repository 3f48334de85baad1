"""The workers of a job in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from parallelrun_api.models import Lane, SlowTry, Timeline, TrySpans
from parallelrun_api.tries.history import DONE, FAILED, RETRIED, Worker
from parallelrun_api.tries.intervals import seconds_in_buckets
from parallelrun_api.tries.shown import number
from parallelrun_api.views.shown import rfc3339

if TYPE_CHECKING:
    from parallelrun_api.tries.columns import Array
    from parallelrun_api.tries.history import History

MOST_BUCKETS: Final = 1000
_MOST_SPANS: Final = 2000
"""Tries that are shown one by one, of all lanes of a page."""
_SLOWEST: Final = 20
_OUTCOMES: Final[dict[int, Literal["completed", "failed", "retried"]]] = {
    DONE: "completed",
    FAILED: "failed",
    RETRIED: "retried",
}


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The times of a job: `start` is when the first worker began, the others are seconds since then."""

    start: float | None
    """Seconds since the epoch; None: no worker has begun."""
    length_s: float


@dataclass(frozen=True, kw_only=True)
class Window:
    """What is asked for."""

    begin_s: float = 0.0
    end_s: float | None = None
    """None: the end of what there is."""
    buckets: int = 200
    skip: int = 0
    """Lanes of the pages before."""
    lanes: int = 50


def clock_of(history: History) -> Clock:
    """The first begin and the last end of anything that a worker did for the job."""
    own = history.tries["is_own"]
    begins = history.tries["begin"][own]
    begins = begins[begins > 0]
    ends = begins if not len(begins) else (history.tries["begin"] + history.tries["elapsed_s"])[own]
    firsts = [float(begins.min())] if len(begins) else []
    lasts = [float(ends.max())] if len(begins) else []
    firsts += [phase.begin for phase in history.phases]
    lasts += [phase.begin + phase.seconds for phase in history.phases]
    start = min(firsts, default=None)
    return Clock(start=start, length_s=max(lasts) - start if start is not None else 0.0)


def timeline(history: History, wanted: Window) -> Timeline:
    """The lanes of a page, in a window of time."""
    clock = clock_of(history)
    begin_s = max(0.0, min(wanted.begin_s, clock.length_s))
    end_s = clock.length_s if wanted.end_s is None else max(begin_s, min(wanted.end_s, clock.length_s))
    end_s = max(end_s, begin_s + 1e-3)
    workers = sorted({*history.workers, *(Worker(each.node, each.process) for each in history.phases)})
    page = workers[wanted.skip : wanted.skip + wanted.lanes]
    view = _View(history, clock.start or 0.0, (begin_s, end_s), wanted.buckets)
    last = wanted.skip + wanted.lanes
    return Timeline(
        start=rfc3339(clock.start) if clock.start is not None else None,
        length_s=round(clock.length_s, 3),
        begin_s=begin_s,
        end_s=end_s,
        bucket_s=(end_s - begin_s) / wanted.buckets,
        lanes=view.lanes(page),
        lanes_total=len(workers),
        slowest=view.slowest(),
        median_run_s=view.median_run_s,
        read_share=history.read_share,
        next_page_token=str(last) if last < len(workers) else None,
    )


class _View:
    """A window of time."""

    def __init__(self, history: History, start: float, window: tuple[float, float], buckets: int) -> None:
        tries = history.tries
        self._history = history
        self._start = start
        self._window = window
        self._buckets = buckets
        is_there = tries["is_own"] & (tries["lane"] >= 0)
        self.median_run_s = number(float(np.median(tries["run_s"][is_there]))) if is_there.any() else None
        begin = tries["begin"] - start
        end = begin + tries["elapsed_s"]
        self._rows = np.flatnonzero(is_there & (begin < window[1]) & (end > window[0]))
        self._begin, self._end = begin[self._rows], end[self._rows]

    def lanes(self, workers: list[Worker]) -> list[Lane]:
        """These workers."""
        history = self._history
        numbers = {worker: at for at, worker in enumerate(workers)}
        of_lane = np.full(len(history.workers) + 1, -1)
        for worker, number_there in history.workers.items():
            of_lane[number_there] = numbers.get(worker, -1)
        lane = of_lane[history.tries["lane"]]
        chosen = np.flatnonzero(lane[self._rows] >= 0)
        rows, begin, end = self._rows[chosen], self._begin[chosen], self._end[chosen]
        here = lane[rows]
        loaded = begin + np.minimum(history.tries["load_s"][rows], end - begin)
        busy = self._in_buckets(begin, end, here, len(workers))
        load = self._in_buckets(begin, loaded, here, len(workers))
        init = self._of_phases(numbers)
        counts = np.bincount(here, minlength=len(workers))
        failed = np.bincount(here, history.tries["status"][rows] != DONE, minlength=len(workers))
        lives = self._lives(lane, numbers)
        has_spans = len(rows) <= _MOST_SPANS
        order = np.argsort(begin, kind="stable")
        return [
            Lane(
                node=worker.node,
                process=worker.process,
                begin_s=round(lives[0][at], 6),
                end_s=round(lives[1][at], 6),
                tries=int(counts[at]),
                failed_tries=int(failed[at]),
                init=_rounded(init[at]),
                load=_rounded(load[at]),
                run=_rounded(np.maximum(0, busy[at] - load[at])),
                spans=self._spans(rows[order][here[order] == at]) if has_spans else None,
            )
            for worker, at in numbers.items()
        ]

    def slowest(self) -> list[SlowTry]:
        """The slowest tries of the window, that took more than others."""
        median = self.median_run_s or 0.0
        run_s = self._history.tries["run_s"][self._rows]
        most = min(_SLOWEST, len(run_s))
        top = np.argpartition(-run_s, most - 1)[:most] if most else np.arange(0)
        names = list(self._history.workers)
        shown = []
        for at in top[np.argsort(-run_s[top])].tolist():
            row = self._rows[at]
            worker = names[int(self._history.tries["lane"][row])]
            slow_s = float(run_s[at])
            shown.append(
                SlowTry(
                    mini_batch=int(self._history.tries["mini_batch"][row]),
                    node=worker.node,
                    process=worker.process,
                    begin_s=round(float(self._begin[at]), 6),
                    run_s=round(slow_s, 6),
                    times_median=round(slow_s / median, 2) if median > 0 else 1.0,
                )
            )
        return shown

    def _in_buckets(self, begin: Array, end: Array, lane: Array, lanes: int) -> Array:
        return seconds_in_buckets(begin, end, lane, lanes=lanes, window=self._window, buckets=self._buckets)

    def _of_phases(self, numbers: dict[Worker, int]) -> Array:
        inits = [each for each in self._history.phases if each.is_init and Worker(each.node, each.process) in numbers]
        begin = np.array([each.begin for each in inits]) - self._start
        lane = np.array([numbers[Worker(each.node, each.process)] for each in inits], "i8")
        return self._in_buckets(begin, begin + [each.seconds for each in inits], lane, len(numbers))

    def _lives(self, lane: Array, numbers: dict[Worker, int]) -> tuple[list[float], list[float]]:
        """When each of the workers began, and ended, whatever the window."""
        tries = self._history.tries
        rows = np.flatnonzero(tries["is_own"] & (tries["lane"] >= 0) & (lane >= 0))
        begin, end = tries["begin"][rows] - self._start, np.zeros(len(rows))
        end = begin + tries["elapsed_s"][rows]
        firsts, lasts = np.full(len(numbers), np.inf), np.full(len(numbers), -np.inf)
        np.minimum.at(firsts, lane[rows], begin)
        np.maximum.at(lasts, lane[rows], end)
        for phase in self._history.phases:
            at = numbers.get(Worker(phase.node, phase.process))
            if at is not None:
                firsts[at] = min(firsts[at], phase.begin - self._start)
                lasts[at] = max(lasts[at], phase.begin - self._start + phase.seconds)
        return np.where(np.isfinite(firsts), firsts, 0).tolist(), np.where(np.isfinite(lasts), lasts, 0).tolist()

    def _spans(self, rows: Array) -> TrySpans:
        tries = self._history.tries
        values: dict[str, Any] = {name: _rounded(tries[name][rows]) for name in ("load_s", "run_s", "elapsed_s")}
        return TrySpans(
            mini_batch=tries["mini_batch"][rows].tolist(),
            begin_s=_rounded(tries["begin"][rows] - self._start),
            outcome=[_OUTCOMES[each] for each in tries["status"][rows].tolist()],
            **values,
        )


def _rounded(values: Array) -> list[float]:
    rounded: list[float] = np.round(values.astype("f8"), 6).tolist()
    return rounded
