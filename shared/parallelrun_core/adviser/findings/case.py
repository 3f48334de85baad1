"""The case that findings are made from: the evidence, the schedule that it gives, and what is worth saying."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from parallelrun_core.adviser.advice import LEVELS, AdviceFinding, Change, Severity, Thresholds
from parallelrun_core.adviser.evidence import Evidence, MeasuredSettings
from parallelrun_core.adviser.schedule import TrySchedule

_SHARES: Final = (0.10, 0.20, 0.35, 0.50)
_SECONDS: Final = (1.0, 5.0, 15.0, 60.0)
"""Times what is worth saying: with its default, 1, 5, 15 minutes and an hour."""
_CASES: Final = (1, 4, 10, 30)
"""Tries that were measured."""


class Guide(StrEnum):
    """The sections of the guide that say how to choose what findings are about."""

    MINI_BATCHES = "docs/choosing-a-compute.md#mini-batches"
    WORKERS = "docs/choosing-a-compute.md#workers-on-a-node"
    NODES = "docs/choosing-a-compute.md#nodes"
    NETWORK = "docs/choosing-a-compute.md#network"
    TIMEOUTS = "docs/choosing-a-compute.md#timeouts"


@dataclass(frozen=True)
class Case:
    evidence: Evidence
    schedule: TrySchedule
    thresholds: Thresholds

    @property
    def settings(self) -> MeasuredSettings:
        return self.evidence.settings

    def count(self, looked_at: int) -> str:
        """Return how many tries or mini-batches there are, in words, if so many were looked at."""
        return self.evidence.sample.count(looked_at)

    def is_worth(self, predicted_s: float) -> bool:
        """Return whether a job that takes so long instead is worth a change."""
        saved, took = self.schedule.measured_s - predicted_s, self.schedule.measured_s
        return saved > self.thresholds.seconds and saved > self.thresholds.share * took

    def faster(
        self,
        name: str,
        predicted_s: float,
        *,
        guide: str = "",
        title: str,
        evidence: list[str],
        change: Change,
        mini_batches: Sequence[int] = (),
        nodes: Sequence[str] = (),
    ) -> Iterator[AdviceFinding]:
        """The finding that this change makes the job so much faster; nothing, if that is not worth it."""
        predicted_s = max(0.0, predicted_s)
        if not self.is_worth(predicted_s):
            return
        took = self.schedule.measured_s
        saved = took - predicted_s
        share = saved / took
        yield AdviceFinding(
            id=name,
            severity=severity(share=share, seconds=saved, cases=len(self.evidence.tries), thresholds=self.thresholds),
            saves="time",
            guide=guide,
            title=title,
            evidence=evidence,
            change=change,
            saving_s=saved,
            saving_share=share,
            predicted_s=predicted_s,
            saving_node_s=saved * self.schedule.nodes,
            mini_batches=list(mini_batches),
            nodes=list(nodes),
        )


def severity(*, share: float, seconds: float, cases: int, thresholds: Thresholds) -> Severity:
    """Return the severity of a finding: as severe as the least of its share, its seconds, and its number of cases say.

    So neither a large share of a short job, nor minutes of a long one, nor one odd mini-batch looks like a catastrophe.
    The idea, and four steps of each measure that roughly double or quadruple, are those of the heuristics of Dr.
    Elephant (LinkedIn): for skewed data, it takes the least of the severities of the ratio (2/4/8/16), of the size and
    of the number of tasks.
    """
    unit = thresholds.seconds or 1.0
    steps = (
        bisect_right(_SHARES, share),
        bisect_right([each * unit for each in _SECONDS], seconds),
        bisect_right(_CASES, cases),
    )
    return LEVELS[max(0, min(steps) - 1)]
