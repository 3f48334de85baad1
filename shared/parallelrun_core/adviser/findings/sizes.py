"""Mini-batches that are too small, too large, or too few for the workers.

The tuning guide of the reference asks for 10 s or more of each mini-batch, so that less than 0.5 % is spent on handing
it over. Here, the replay decides: of the sizes that are hardly slower than the best, the one that changes least.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from parallelrun_core.adviser.advice import AdviceFinding, Change
from parallelrun_core.adviser.evidence import Floats
from parallelrun_core.adviser.findings.case import Case, Guide
from parallelrun_core.adviser.replay import and_then, joined, split
from parallelrun_core.adviser.schedule import TrySchedule
from parallelrun_core.figures import counted, duration, percent

_NEAR_BEST: Final = 0.02
_FACTORS: Final = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100, 200, 500, 1000, 2000, 5000, 10_000)
_MOST_S: Final = 600.0
"""A mini-batch that fails is run again, and progress is seen by mini-batches: nobody wants hours of each."""
_ENGINE_S: Final = 0.002
"""Of a worker's time. Without anything to do, four workers together run some ten thousand each second."""
_END_S: Final = 1.0
"""What follows the last try of a job with few mini-batches: workers shut down, the output is put together."""
_OF_TIMEOUT: Final = 1 / 3
_MB = 1 << 20


def findings_of(case: Case) -> Iterator[AdviceFinding]:
    """Another `mini_batch_size`."""
    if not case.settings.unit:
        return
    yield from _too_small(case)
    yield from _too_large(case)


def _too_small(case: Case) -> Iterator[AdviceFinding]:
    schedule, size = case.schedule, case.settings.size
    work = schedule.work + schedule.lost
    median, waits_s = float(np.median(work)), _waits_s(schedule)
    options = {
        factor: schedule.seconds(joined(work, factor) + schedule.fixed_s) - waits_s * (1 - 1 / factor)
        for factor in _FACTORS
        if factor * 2 <= len(work) and factor * median <= _MOST_S
    }
    factor = _nearest(options)
    if not factor:
        return
    fixed_s = schedule.fixed_s + waits_s * len(schedule.lanes) / schedule.count
    longest = float(joined(work, factor).max())
    changed = {"mini_batch_size": size_text(size * factor, case.settings.unit)}
    if longest > _OF_TIMEOUT * case.settings.run_invocation_timeout_s:
        changed["run_invocation_timeout"] = str(int(np.ceil(3 * longest)))
    yield from case.faster(
        "mini_batch_too_small",
        options[factor],
        guide=Guide.MINI_BATCHES,
        title=f"Mini-batches are too small: {percent(fixed_s / (median + fixed_s))} of the workers' time goes into "
        "handing them over.",
        evidence=[
            f"half of {case.count(len(work))} mini-batches took less than {duration(median)}",
            f"each costs {duration(fixed_s)} beside its items",
            "the tuning guide advises 10 s or more, and less than 0.5 % for handing over",
        ],
        change=Change(text=f"Make mini-batches {factor} times as large.", set=changed),
    )


def _waits_s(schedule: TrySchedule) -> float:
    """Return how much of the job's time workers waited for mini-batches because there are so many of them: what the
    replay can't explain, as long as it is no more for each than the engine takes to publish, record and store one.
    """
    waits_s = max(0.0, schedule.unexplained_s) + max(0.0, schedule.after_s - _END_S)
    return waits_s if waits_s * len(schedule.lanes) <= _ENGINE_S * schedule.count else 0.0


def _too_large(case: Case) -> Iterator[AdviceFinding]:
    schedule, size, unit = case.schedule, case.settings.size, case.settings.unit
    typical = int(np.median(schedule.items))
    divisible = typical if unit != "bytes" else min(typical, size // 1024)
    options: dict[int, float] = {}
    for factor in _FACTORS:
        if factor <= divisible and size // factor >= 1:
            options[factor] = _when_divided(schedule, factor)
    factor = _nearest(options)
    if not factor:
        return
    count, lanes = schedule.count, len(schedule.lanes)
    name = "too_few_mini_batches" if count < lanes else "mini_batch_too_large"
    busy = schedule.busy_s / (lanes * max(1e-9, schedule.base_s))
    few = f"There are {counted(count, 'mini-batch')} for {counted(lanes, 'worker')}: the others have nothing to do."
    large = f"Mini-batches are too large: workers wait for the last ones, and are busy for {percent(busy)} of the time."
    yield from case.faster(
        name,
        options[factor],
        guide=Guide.MINI_BATCHES,
        title=few if count < lanes else large,
        evidence=[
            f"{case.count(len(schedule.work))} mini-batches on {lanes:,} workers, half of which took longer than "
            f"{duration(float(np.median(schedule.work)))}",
            f"the longest took {duration(float(schedule.work.max()))} of {duration(schedule.measured_s)}",
        ],
        change=Change(
            text=f"Make mini-batches {factor} times smaller.",
            set={"mini_batch_size": of_size(size, factor, unit)},
        ),
    )


def _when_divided(schedule: TrySchedule, factor: int) -> float:
    parts = split(schedule.work, schedule.items, factor, schedule.fixed_s, excess_in_one_item(schedule))
    # What was tried in vain isn't gained.
    return schedule.seconds(and_then(parts, schedule.lost[schedule.lost > 0]))


def excess_in_one_item(schedule: TrySchedule) -> Floats:
    """Return what a mini-batch took above twice the usual for its items: taken to be in a single one of them."""
    items = np.maximum(schedule.items, 1)
    usual = float(np.median(schedule.work / items)) * items
    return np.where(schedule.work > 2 * usual, schedule.work - usual, 0.0)


def _nearest(options: dict[int, float]) -> int:
    """The factor that changes least among those that are hardly worse than the best; 0: there is none."""
    if not options:
        return 0
    best = min(options.values())
    return min(factor for factor, took in options.items() if took <= best * (1 + _NEAR_BEST))


def size_text(size: int, unit: str) -> str:
    """A value for `mini_batch_size`."""
    if unit == "rows":
        return f"rows:{size}"
    if unit == "bytes":
        return f"{size // _MB}mb" if size % _MB == 0 else f"{max(1, size // 1024)}kb"
    return str(size)


def of_size(size: int, factor: int, unit: str) -> str:
    """Return a size divided by a factor and rounded up, with its unit."""
    return size_text(-(-size // factor), unit)
