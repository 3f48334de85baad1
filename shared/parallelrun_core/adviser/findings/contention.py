"""Workers that wait for each other: a lock, a database, a disk or a service that serves one after the other.

The first try of each worker shows it: while the others aren't there yet, or are served before it, it is quicker than
all that follow. Where the time of a mini-batch grows with the number of workers, more of them don't help, as the
universal scalability law (Gunther) says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from parallelrun_core.adviser.advice import Change, Finding
from parallelrun_core.adviser.duration import duration, percent
from parallelrun_core.adviser.evidence import DONE
from parallelrun_core.adviser.findings.case import Case
from parallelrun_core.adviser.schedule import Schedule, numbers_in_process

_LEAST_ROUNDS: Final = 4
_SLOWED: Final = 1.5
_NEXT: Final = 3
_STEADY: Final = 0.8
_WAITS: Final = 0.5
"""CPU seconds per second: workers that compute more than that don't wait."""


def slowdown(schedule: Schedule) -> float:
    """How many times longer a mini-batch takes for other workers than alone; 1: no sign of that."""
    tries = schedule.evidence.tries
    lanes, done = len(schedule.lanes), np.flatnonzero(tries.status == DONE)
    if lanes < 2 or len(done) < _LEAST_ROUNDS * lanes:
        return 1.0
    if float(tries.cpu_s[done].sum()) > _WAITS * float(tries.run_s[done].sum()):
        return 1.0
    per_item = tries.run_s[done] / np.maximum(tries.items[done], 1)
    of_process = numbers_in_process(tries.process[done])
    first, next_ones = of_process == 0, (of_process > 0) & (of_process <= _NEXT)
    later = per_item[~first]
    alone, usual = float(per_item[first].min()), float(np.median(later))
    # By chance, the shortest of the first tries is as short as this share of all others.
    expected = float(np.quantile(later, 1 / (int(first.sum()) + 1)))
    if per_item[next_ones].mean() < _STEADY * later.mean():
        return 1.0  # the job gets slower as time goes by
    if alone <= 0 or expected < _SLOWED * alone or per_item[first].mean() > usual:
        return 1.0
    return usual / alone


def findings_of(case: Case) -> Iterator[Finding]:
    """That they do, with what it would save if they didn't."""
    schedule = case.schedule
    factor = slowdown(schedule)
    if factor <= 1.0:
        return
    lanes = len(schedule.lanes)
    alone = float(np.median(schedule.work)) / factor
    yield from case.faster(
        "contention",
        schedule.seconds(schedule.work / factor + schedule.lost + schedule.fixed_s),
        title=f"Workers wait for each other: with {lanes:,} of them, a mini-batch takes {factor:.1f} times as long as "
        "alone.",
        evidence=[
            f"the quickest first mini-batch of a worker took {duration(alone)}, later ones {duration(alone * factor)}",
            f"meanwhile workers used {percent(_cpu(schedule))} of a CPU each",
        ],
        change=Change(
            text="Find what they share: a lock, one connection to a database, a file or a service that answers one at "
            "a time. Until that is mended, fewer processes do the same."
        ),
    )


def _cpu(schedule: Schedule) -> float:
    tries = schedule.evidence.tries
    return float(tries.cpu_s.sum()) / max(1e-9, float(tries.elapsed_s.sum()))
