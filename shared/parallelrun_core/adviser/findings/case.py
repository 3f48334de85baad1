"""The case that findings are made from: the evidence, the schedule that it gives, and what is worth saying."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from parallelrun_core.adviser.advice import AdviceFinding, Change, Thresholds
from parallelrun_core.adviser.evidence import Evidence, MeasuredSettings
from parallelrun_core.adviser.schedule import TrySchedule
from parallelrun_core.adviser.severity import severity


@dataclass(frozen=True)
class Case:
    """A job."""

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
