"""A job that gets slower as it goes on: in run(), or in what is around it.

The decision tree of the tuning guide: where `Run Method Seconds` grow, the script is at fault; where only
`Elapsed Seconds` do, the storage. That it grows at all is believed if the slope of a line through all tries is four
times its standard error, and if the medians of the four quarters of the job rise, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from parallelrun_core.adviser.advice import AdviceFinding, Change
from parallelrun_core.adviser.evidence import DONE, Floats, groups_of
from parallelrun_core.adviser.findings.case import Case
from parallelrun_core.adviser.schedule import numbers_in_process
from parallelrun_core.figures import duration, percent

_LEAST: Final = 20
_SURE: Final = 4.0
_QUARTERS: Final = 4


def findings_of(case: Case) -> Iterator[AdviceFinding]:
    """Return what grows, and how much it costs."""
    tries = case.evidence.tries
    done = np.flatnonzero(tries.status == DONE)
    if len(done) < _LEAST:
        return
    at = tries.started_s[done]
    items = np.maximum(tries.items[done], 1)
    run, around = tries.run_s[done] / items, (tries.elapsed_s - tries.run_s)[done] / items
    number = numbers_in_process(tries.process[done]).astype(np.float64)
    of_run, of_around = excess(run, at, number), excess(around, at, number)
    if of_run is None and of_around is None:
        return
    grown = [(gone, values) for gone, values in ((of_run, run), (of_around, around)) if gone is not None]
    gone, values = max(grown, key=lambda each: float(each[0].sum()))
    is_run = values is run
    schedule = case.schedule
    by_mini_batch = np.zeros(len(tries))
    by_mini_batch[done] = gone * items
    work = np.maximum(0.0, schedule.work - by_mini_batch[schedule.last])
    quarter = max(1, len(done) // _QUARTERS)
    first, last = float(np.median(values[:quarter])), float(np.median(values[-quarter:]))
    grows = memory_growth(case)
    evidence = [
        f"{'run()' if is_run else 'loading and all else around run()'} took {duration(first)} for an item in the first "
        f"quarter of the job, and {duration(last)} in the last",
        *([f"the memory of a worker grew by {percent(grows)} meanwhile"] if grows > 0.2 else []),
    ]
    run_text = (
        "See what run() keeps from call to call (lists, caches, connections, open files): "
        "`--set profiling_module=cProfile` shows what takes longer."
    )
    around_text = "See the storage: its limits of requests and bytes, and logs/sys/storage."
    yield from case.faster(
        "slower_over_time",
        schedule.seconds(work + schedule.lost + schedule.fixed_s),
        title=f"The job gets slower: {'run()' if is_run else 'loading'} takes {last / max(first, 1e-9):.1f} times as "
        "long at its end as at its beginning.",
        evidence=evidence,
        change=Change(text=run_text if is_run else around_text),
    )


def excess(values: Floats, *axes: Floats) -> Floats | None:
    """By how much each value is above what it was at the beginning; None: they don't rise.

    Args:
        values: in the order of time.
        axes: what they may grow with: time, or how much their process has done. The one that explains most counts.
    """
    medians = [float(np.median(part)) for part in np.array_split(values, _QUARTERS)]
    if any(later <= earlier for earlier, later in pairwise(medians)):
        return None
    sure, slope, axis = max((*_line(axis, values), number) for number, axis in enumerate(axes))
    if sure < _SURE:
        return None
    above: Floats = np.minimum(values, slope * (axes[axis] - axes[axis].min()))
    return above


def _line(at: Floats, values: Floats) -> tuple[float, float]:
    """Return how many standard errors the slope of a line through the values is, and that slope; 0: it doesn't rise."""
    spread, heights = at - at.mean(), values - values.mean()
    ss = float((spread**2).sum())
    slope = float((spread * heights).sum()) / ss if ss else 0.0
    if slope <= 0:
        return 0.0, 0.0
    error = float(np.sqrt(((heights - slope * spread) ** 2).sum() / max(1, len(values) - 2) / ss))
    return slope / max(error, 1e-12), slope


def memory_growth(case: Case) -> float:
    """By which share the peak memory of a worker grew from its first quarter to its last, in the median."""
    tries = case.evidence.tries
    grown = []
    for _, mine in groups_of(tries.process):
        peak = tries.peak_bytes[mine]
        quarter = len(peak) // _QUARTERS
        if quarter and (before := float(np.median(peak[:quarter]))):
            grown.append(float(np.median(peak[-quarter:])) / before - 1)
    return float(np.median(grown)) if grown else 0.0
