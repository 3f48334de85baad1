"""A job that was broken off after some of its mini-batches, taken for a sample of all of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from parallelrun_core.adviser.advice import AdviceFinding, Thresholds
from parallelrun_core.adviser.advising import advise
from parallelrun_core.adviser.evidence import Evidence, Sample
from parallelrun_core.adviser.schedule import TrySchedule

TUNABLE: Final = frozenset({"mini_batch_size", "max_concurrency_per_instance", "workers_per_gpu"})
"""Fields that change how long a job takes, and not what it does."""
_AS_WELL: Final = frozenset({"run_invocation_timeout"})
MOST_NODES: Final = 1000
_WORTH: Final = Thresholds(seconds=1.0)


class Trial:
    """The result of a trial of some settings.

    Args:
        evidence: with at least one try.
        mini_batches: how many the job has in all, with these settings.
    """

    def __init__(self, evidence: Evidence, mini_batches: int) -> None:
        decided = len(np.unique(evidence.tries.mini_batch))
        sample = evidence.sample
        if mini_batches > decided:
            sample = Sample(mini_batches / decided, stretches=2)
        some = replace(evidence, sample=sample, is_running=False, after_s=0.0)
        self._schedule = TrySchedule(replace(some, seconds=TrySchedule(some).base_s))
        self.mini_batches = mini_batches
        self.tried = decided
        self.mini_batch_s = float(np.median(self._schedule.durations))
        """The median of a mini-batch."""
        self.processes = self._schedule.processes_per_node

    def seconds(self, nodes: int) -> float:
        """Return how long all of the job would take on so many nodes like the one that tried."""
        return self._schedule.seconds(ready=self._schedule.lanes_of(nodes=nodes))

    def nodes_for(self, target_s: float) -> int | None:
        """The least number of nodes with which the job ends in time; None: no number is enough."""
        low, high = 1, MOST_NODES
        if self.seconds(high) > target_s:
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.seconds(middle) <= target_s else (middle + 1, high)
        return low

    def advised(self) -> AdviceFinding | None:
        """The change that would save most, among those that can be tried."""
        findings = advise(self._schedule.evidence, _WORTH).findings
        fitting = (each for each in findings if TUNABLE & each.change.set.keys() and each.saves == "time")
        return next((each for each in fitting if each.change.set.keys() <= TUNABLE | _AS_WELL), None)
