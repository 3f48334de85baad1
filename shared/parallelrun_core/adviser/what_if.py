"""Curves of the time of a job with other numbers of nodes or processes, or with mini-batches of other sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from parallelrun_core.adviser.advice import AdviceCurve, CurvePoint
from parallelrun_core.adviser.asked import Setting
from parallelrun_core.adviser.evidence import Evidence
from parallelrun_core.adviser.findings.contention import cpu_per_worker
from parallelrun_core.adviser.findings.sizes import excess_in_one_item
from parallelrun_core.adviser.replay import joined, split
from parallelrun_core.adviser.schedule import TrySchedule
from parallelrun_core.errors import Conflict

_MOST_WORKERS: Final = 100_000
"""A schedule of so many takes some tens of milliseconds."""


def curve_of(evidence: Evidence, setting: Setting, values: Sequence[int], *, price: float | None = None) -> AdviceCurve:
    """Return how long the job would take for each of these values.

    Args:
        price: of a node for an hour, in any currency.

    Raises:
        Conflict: no mini-batch was tried yet; its mini-batches have no size; or that would be too many workers.
    """
    if not len(evidence.tries):
        raise Conflict(f"No mini-batch of job {evidence.job_id} has been tried yet.")
    schedule = TrySchedule(evidence)
    if setting == "mini_batch_size" and not evidence.settings.unit:
        why = "the job chooses it" if evidence.settings.is_auto else "they are groups of keys, or ranks"
        raise Conflict(f"The mini-batches of job {evidence.job_id} have no size that was given: {why}.")
    _check_workers(schedule, setting, max(values))
    points = [_point(schedule, setting, value, price) for value in values]
    now = {
        "nodes": schedule.nodes, "processes": schedule.processes_per_node, "mini_batch_size": evidence.settings.size,
    }[setting]  # fmt: skip
    return AdviceCurve(
        job_id=evidence.job_id, setting=setting, now=now, seconds=schedule.measured_s, points=points,
        notes=_notes(evidence, setting),
    )  # fmt: skip


def _check_workers(schedule: TrySchedule, setting: Setting, value: int) -> None:
    each = {"nodes": schedule.processes_per_node, "processes": schedule.nodes}.get(setting, 0)
    if value * each > _MOST_WORKERS:
        per = "processes on each node" if setting == "nodes" else "nodes"
        most = max(1, _MOST_WORKERS // each)
        raise Conflict(
            f"{value:,} with {each:,} {per} are more than {_MOST_WORKERS:,} workers: ask for up to {setting}={most}."
        )


def _point(schedule: TrySchedule, setting: Setting, value: int, price: float | None) -> CurvePoint:
    nodes = schedule.nodes
    match setting:
        case "nodes":
            nodes = value
            took = schedule.seconds(ready=schedule.lanes_of(nodes=value))
        case "processes":
            took = _with_processes(schedule, value)
        case "mini_batch_size":
            took = _with_size(schedule, value)
    node_hours = nodes * took / 3600
    cost = None if price is None else price * node_hours
    return CurvePoint(value=value, seconds=took, node_hours=node_hours, cost=cost)


def _with_processes(schedule: TrySchedule, count: int) -> float:
    """Mini-batches take longer where more processes compute than there are CPUs."""
    cpus = min((use.cpus for use in schedule.evidence.uses.values() if use.cpus), default=0.0)
    share = min(1.0, cpu_per_worker(schedule))
    slower = max(1.0, count * share / cpus) if cpus else 1.0
    now = max(1.0, schedule.processes_per_node * share / cpus) if cpus else 1.0
    durations = schedule.work * (slower / now) + schedule.lost + schedule.fixed_s
    return schedule.seconds(durations, schedule.lanes_of(processes=count))


def _with_size(schedule: TrySchedule, size: int) -> float:
    now = schedule.evidence.settings.size
    work = schedule.work + schedule.lost
    if size >= now:
        return schedule.seconds(joined(work, max(1, round(size / now))) + schedule.fixed_s)
    parts = max(1, round(now / size))
    return schedule.seconds(split(work, schedule.items, parts, schedule.fixed_s, excess_in_one_item(schedule)))


def _notes(evidence: Evidence, setting: Setting) -> list[str]:
    notes = {
        "nodes": "More nodes are taken to be like those that the job had, and ready as soon.",
        "processes": "What workers wait for, such as storage or a service, is taken to bear more of them at once.",
        "mini_batch_size": "Neighbouring mini-batches are joined, and divided evenly.",
    }
    so_far = ["The job runs: this is about what has ended so far."] if evidence.is_running else []
    return [notes[setting], *so_far]
