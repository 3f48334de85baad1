"""The adviser: makes advice from evidence."""

from __future__ import annotations

import numpy as np

from parallelrun_core.adviser.advice import Advice, AdviceBasis, AdviceFinding, Thresholds
from parallelrun_core.adviser.evidence import Evidence
from parallelrun_core.adviser.findings import subjects
from parallelrun_core.adviser.findings.case import Case
from parallelrun_core.adviser.replay import lower_bound
from parallelrun_core.adviser.schedule import TrySchedule
from parallelrun_core.figures import counted, duration, percent

_ORDER = {"risk": 0, "time": 1, "cost": 2}
_SMALL_S = 1.0
"""Who tries a job out on a few files asks what matters there, too."""


def advise(evidence: Evidence, thresholds: Thresholds | None = None) -> Advice:
    """Return what would make a job faster or safer: what endangers it first, then what saves most.

    Silence is an answer: nothing that saves less than the thresholds is said.
    """
    limits = thresholds or Thresholds()
    if not len(evidence.tries):
        return Advice(
            job_id=evidence.job_id, summary="No mini-batch has been tried yet.",
            min_saving_s=limits.seconds, min_saving_share=limits.share,
        )  # fmt: skip
    schedule = TrySchedule(evidence)
    findings = _findings(evidence, schedule, limits)
    smaller = 0
    if not findings and limits.seconds > _SMALL_S:
        smaller = len(_findings(evidence, schedule, Thresholds(seconds=_SMALL_S, share=limits.share)))
    has_several, each = evidence.settings.has_several_in_flight, evidence.sample.each
    basis = AdviceBasis(
        seconds=schedule.measured_s,
        mini_batches=schedule.count,
        tries=round(len(evidence.tries) * evidence.sample.each),
        looked_at=len(evidence.tries),
        nodes=schedule.nodes,
        processes_per_node=schedule.processes_per_node,
        is_running=evidence.is_running,
        mini_batch_s=float(np.median(schedule.work)),
        fixed_s=schedule.fixed_s,
        lower_bound_s=0.0 if has_several else lower_bound(schedule.durations, len(schedule.lanes), each=each),
        unexplained_s=0.0 if has_several else schedule.unexplained_s,
    )
    return Advice(
        job_id=evidence.job_id, summary=_summary(basis, len(findings), limits, smaller), basis=basis, findings=findings,
        min_saving_s=limits.seconds, min_saving_share=limits.share,
    )  # fmt: skip


def _findings(evidence: Evidence, schedule: TrySchedule, limits: Thresholds) -> list[AdviceFinding]:
    case = Case(evidence, schedule, limits)
    findings = [finding for findings_of in subjects() for finding in findings_of(case)]
    if evidence.settings.has_several_in_flight:  # savings are of schedules in which a worker runs one at a time
        findings = [each for each in findings if each.saves == "risk" or not (each.saving_s or each.saving_node_s)]
    return sorted(findings, key=lambda finding: (_ORDER[finding.saves], -finding.saving_s, -finding.saving_node_s))


def _summary(basis: AdviceBasis, findings: int, limits: Thresholds, smaller: int) -> str:
    looked_at = (
        f"{counted(basis.mini_batches, 'mini-batch')} on {counted(basis.nodes, 'node')}, "
        f"{counted(basis.processes_per_node, 'process')} each, "
        f"{duration(basis.seconds)}{' so far' if basis.is_running else ''}"
    )
    if basis.looked_at != basis.tries:
        looked_at = f"about {looked_at} (a sample of {basis.looked_at:,} tries)"
    if findings:
        return f"{findings} finding{'s' if findings > 1 else ''} in {looked_at}."
    worth = f"{percent(limits.share)} and {duration(limits.seconds)}"
    if smaller:
        return f"Nothing in {looked_at} would save more than {worth}; {counted(smaller, 'finding')} would save less."
    return f"Nothing to change in {looked_at}: nothing would save more than {worth}."
