"""Retention as the API shows it: disk usage, and what a prune removes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from parallelrun_core.answers import retention as answers
from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.retention.report import SweepReport, last_report
from parallelrun_core.retention.requests import rules_of
from parallelrun_core.retention.rules import Rules
from parallelrun_core.retention.sweep import Sweeper
from parallelrun_core.retention.usage import usage_of


def plan(root: Path) -> SweepReport:
    """Return what a sweep that somebody asks for would do, by the rules of the masters."""
    return Sweeper(root, rules_of(root) or Rules()).plan(is_urgent=True)


def sweep_of(report: SweepReport) -> answers.Sweep:
    return answers.Sweep(
        at=rfc3339(report.at),
        removed={
            kind: answers.RemovedKind(count=each.count, bytes=each.bytes) for kind, each in report.removed.items()
        },
        jobs=report.jobs,
        notices={job_id: rfc3339(at) for job_id, at in report.notices.items()},
        references=report.references,
        problem=report.problem,
        not_removed=report.not_removed,
        took_s=report.took_s,
        is_applied=report.is_applied,
    )


def usage(root: Path) -> answers.ClusterUsage:
    """The room that a root folder takes, as it is shown."""
    measured, rules, last = usage_of(root), rules_of(root), last_report(root)
    return answers.ClusterUsage(
        free_bytes=measured.free_bytes,
        total_bytes=measured.total_bytes,
        jobs=measured.jobs,
        bytes=measured.bytes,
        largest=[
            answers.JobUsage(
                job=each.job_id, bytes=each.bytes, jobs=each.jobs, ended=rfc3339(each.ended) if each.ended else None
            )
            for each in measured.largest
        ],
        rules=msgspec.structs.asdict(rules) if rules is not None else {},
        last_sweep=sweep_of(last) if last is not None else None,
    )
