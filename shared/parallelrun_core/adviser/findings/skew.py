"""Findings about skew: one or a few mini-batches that take much longer than the others, for their data, not for a node.

What counts as much longer is 4 times the median, the second step of Dr. Elephant's scale for skew (2/4/8/16) and above
the 3 times of Spark's stragglers; and only what the end of the job waits for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from parallelrun_core.adviser.advice import AdviceFinding, Change
from parallelrun_core.adviser.evidence import DONE
from parallelrun_core.adviser.findings.case import Case, Guide
from parallelrun_core.adviser.replay import Runs, and_then
from parallelrun_core.figures import duration

_MUCH_LONGER: Final = 4.0
_MOST_SHOWN: Final = 5
_MOST_PIECES: Final = 10**9
"""Of one mini-batch: enough for any, and fit to be counted."""


def findings_of(case: Case) -> Iterator[AdviceFinding]:
    """Items, or groups of a key, that should be divided."""
    schedule = case.schedule
    work = schedule.work
    half = float(np.median(work))
    usual = np.full(len(work), half)
    if case.settings.is_auto:  # larger mini-batches may well take longer
        items = np.maximum(schedule.items, 1)
        usual = np.maximum(usual, float(np.median(work / items)) * items)
    # How long one would have taken that was stopped, nobody knows; that it was is said where failures are.
    has_ended = case.evidence.tries.status[schedule.last] == DONE
    heavy = np.flatnonzero((work > _MUCH_LONGER * np.maximum(usual, schedule.fixed_s)) & has_ended)
    if not len(heavy) or len(heavy) > len(work) // 4:
        return
    each = np.where(usual[heavy] > 0, usual[heavy], work[heavy])
    pieces = np.minimum(np.ceil(work[heavy] / each), _MOST_PIECES)
    rest = np.delete(schedule.durations, heavy)
    divided = Runs(each + schedule.fixed_s, pieces.astype(np.int64))
    predicted = schedule.seconds(and_then(divided, rest))
    order = heavy[np.argsort(-work[heavy])]
    ids = [int(schedule.ids[each]) for each in order[:_MOST_SHOWN]]
    longest = order[0]
    times = work[longest] / max(usual[longest], 1e-9)
    slowest_first = schedule.seconds(np.concatenate([schedule.durations[order], rest]))
    many = (
        f"{case.count(len(heavy))} of {case.count(len(work))} mini-batches take"
        if len(heavy) > 1
        else f"Mini-batch {ids[0]} takes"
    )
    has_keys = case.settings.has_keys
    unit = "the rows or files of one key" if has_keys else "an item"
    evidence = [
        f"mini-batch {ids[0]} took {duration(float(work[longest]))}, half of all took less than {duration(half)}",
        f"with {'them' if len(heavy) > 1 else 'it'} begun first, the job would take {duration(slowest_first)}",
    ]
    todo = (
        "Add a key to `partition_keys` that divides the largest groups."
        if has_keys
        else f"Divide the largest input of mini-batch {ids[0]} into pieces like the others, or name it so that it "
        "comes first."
    )
    yield from case.faster(
        "skewed_keys" if has_keys else "giant_item",
        predicted,
        guide=Guide.MINI_BATCHES,
        title=f"{many} {times:.0f} times as long as usual: {unit} is much larger or harder than the others, and the "
        "job waits for it.",
        evidence=evidence,
        change=Change(text=todo),
        mini_batches=ids,
    )
