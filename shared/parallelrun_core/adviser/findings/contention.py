"""Workers that wait for each other: a lock, a database, a disk or a service that serves one after the other.

The first try of each worker shows it: while the others aren't there yet, or are served before it, it is quicker than
all that follow. Where the time of a mini-batch grows with the number of workers, more of them don't help, as the
universal scalability law (Gunther) says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from parallelrun_core.adviser.advice import AdviceFinding, Change
from parallelrun_core.adviser.evidence import DONE, Floats
from parallelrun_core.adviser.findings.case import Case, Guide
from parallelrun_core.adviser.schedule import TrySchedule, numbers_in_process
from parallelrun_core.figures import duration, part_of_a_cpu, percent

_LEAST_ROUNDS: Final = 4
_SLOWED: Final = 1.5
_NEXT: Final = 3
_STEADY: Final = 0.8
_REGULAR: Final = 0.5
_VARIES: Final = 0.2
_SLOWER_THAN_FIRST: Final = 1.25
"""With four workers, the first ones wait for 1.5 others in the mean, later ones for three: 1.6 times as long."""
_DISKS: Final = 0.2
_WAITS: Final = 0.5
"""CPU seconds per second: workers that compute more than that don't wait."""


def cpu_per_worker(schedule: TrySchedule) -> float:
    """CPU seconds for each second of a worker that is busy."""
    tries = schedule.evidence.tries
    return float(tries.cpu_s.sum()) / max(1e-9, float(tries.elapsed_s.sum()))


def slowdown(schedule: TrySchedule) -> float:
    """Return how many times longer a mini-batch takes for other workers than alone; 1: no sign of that."""
    tries = schedule.evidence.tries
    lanes, done = len(schedule.lanes), np.flatnonzero(tries.status == DONE)
    if lanes < 2 or len(done) < _LEAST_ROUNDS * lanes:
        return 1.0
    if float(tries.cpu_s[done].sum()) > _WAITS * float(tries.run_s[done].sum()):
        return 1.0
    per_item = tries.run_s[done] / np.maximum(tries.items[done], 1)
    of_process = numbers_in_process(tries.process[done])
    first, later = per_item[of_process == 0], per_item[of_process > 0]
    one_by_one = _served_one_by_one(schedule.ends_s[done], schedule.evidence.sample.stretches)
    # Without that, ends are as irregular as the times are; or these are all the same, for the first tries, too.
    if one_by_one and (later.std() > _VARIES * later.mean() or later.mean() >= _SLOWER_THAN_FIRST * first.mean()):
        return max(1.0, float(tries.run_s[done][of_process > 0].mean()) / one_by_one)
    alone, usual = float(first.min()), float(np.median(later))
    # By chance, the shortest of the first tries is as short as this share of all others.
    expected = float(np.quantile(later, 1 / (len(first) + 1)))
    next_ones = per_item[(of_process > 0) & (of_process <= _NEXT)]
    if next_ones.mean() < _STEADY * later.mean():
        return 1.0  # the job gets slower as time goes by
    if alone <= 0 or expected < _SLOWED * alone or first.mean() > usual:
        return 1.0
    return usual / alone


def _served_one_by_one(ends_s: Floats, stretches: int) -> float:
    """The seconds from the end of one try to that of the next, if these are hardly ever much less; 0: they are.

    Workers that don't wait for each other end at any times, also two at once.
    """
    gaps = np.sort(np.diff(np.sort(ends_s)))
    gaps = gaps[: len(gaps) + 1 - stretches]  # without those between stretches, where others ended, too
    mean = float(gaps.mean())
    return mean if float(np.quantile(gaps, 0.1)) >= _REGULAR * mean else 0.0


def findings_of(case: Case) -> Iterator[AdviceFinding]:
    """Yield the finding that workers hold each other up, with what it would save if they didn't."""
    schedule = case.schedule
    factor = slowdown(schedule)
    if factor <= 1.0:
        return
    lanes = len(schedule.lanes)
    alone = float(np.median(schedule.work)) / factor
    yield from case.faster(
        "contention",
        schedule.seconds(schedule.work / factor + schedule.lost + schedule.fixed_s),
        guide=Guide.WORKERS,
        title=f"Workers wait for each other: with {lanes:,} of them, a mini-batch takes {factor:.1f} times as long as "
        "alone.",
        evidence=[
            f"half of the mini-batches took longer than {duration(alone * factor)}; alone, {duration(alone)} is enough",
            f"meanwhile workers used {part_of_a_cpu(cpu_per_worker(schedule))} each",
            *(
                f"on {name}, processes waited for disks for {percent(use.io_pressure)} of the time (PSI)"
                for name, use in case.evidence.uses.items()
                if (use.io_pressure or 0.0) > _DISKS and use.io_pressure
            ),
        ],
        change=Change(
            text="Find what they share: a lock, one connection to a database, a file or a service that answers one at "
            "a time. Until that is mended, fewer processes do the same."
        ),
    )
