"""The policy of retention: which jobs are pruned by which rule, when that is noted on them, and what others need.

A pipeline and the jobs of its steps are one unit: they go together. Nothing here reads or writes; a sweep
(`sweep.py`) and a benchmark that plays a year call the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

import msgspec

from parallelrun_core.retention.rules import Rules

DAY_S: Final = 86_400.0
LEAST_AGE_S: Final = 600.0
"""A job is removed at the earliest so long after its end or its deletion: whoever was about to name it has done so."""
_MARGIN: Final = 0.97
"""Part of a limit up to which a rule fills it: jobs that run grow between two sweeps."""
_VARIATION: Final = 1.25
"""Factor by which more may come within the next notice than has come within the last one."""
_STAYING: Final = 0.95
"""Part of a limit below which a job that was noticed is let off again, so that none is noticed again and again."""


class JobFacts(msgspec.Struct, kw_only=True, frozen=True, array_like=True):
    """The facts about one job that decide whether it is kept. Times are in seconds since the epoch."""

    job_id: str
    unit: str
    """The outermost pipeline that it belongs to, or the job itself."""
    submitted: float
    ended: float
    """0: it has not ended, or its records can't be read."""
    is_completed: bool = False
    bytes: int = 0
    parts_bytes: int = 0
    """Bytes of what only a resumed or retried job needs."""
    logs_bytes: int = 0
    """Bytes of the logs of its workers."""
    names: tuple[str, ...] = ()
    """The jobs whose folders it needs: while it has not ended, all that its records name, then reused steps."""
    code: tuple[str, ...] = ()
    """All hashes in its records: snapshots of code and files of assets."""
    deleted: float = 0.0
    """Time when somebody has deleted it; 0: nobody has."""
    noticed: float = 0.0
    """Time when it was noted that a rule will remove it; 0: it was not."""
    stamp: str = ""
    """Changes when something is written into the job's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A job, or a pipeline with the jobs of its steps."""

    name: str
    members: tuple[str, ...]
    """Its jobs, the pipeline itself first."""
    ended: float
    """0: one of them has not ended."""
    submitted: float
    bytes: int
    deleted: float
    noticed: float
    is_orphaned: bool
    """True if the pipeline itself is gone, as after a removal that was broken off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A note on the jobs of a unit that a rule will remove them."""

    unit: str
    why: str
    removed_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """The decisions of one sweep about jobs."""

    remove: tuple[Unit, ...] = ()
    """Units whose folders go now."""
    notices: tuple[Notice, ...] = ()
    withdrawn: tuple[str, ...] = ()
    """Units whose notice is taken back: the rule no longer needs their room, or something refers to them."""
    strip_parts: tuple[str, ...] = ()
    strip_logs: tuple[str, ...] = ()
    references: Mapping[str, str] = field(default_factory=dict)
    """Units that a rule or a user would remove, each with what refers to it."""
    problem: str = ""
    """Why a limit can't be kept; empty: it can."""


def units_of(facts: Iterable[JobFacts]) -> dict[str, Unit]:
    """Group jobs into units, by name."""
    members: dict[str, list[JobFacts]] = {}
    for each in facts:
        members.setdefault(each.unit, []).append(each)
    return {name: _unit(name, jobs) for name, jobs in members.items()}


def _unit(name: str, jobs: Sequence[JobFacts]) -> Unit:
    if len(jobs) == 1 and jobs[0].job_id == name:
        job = jobs[0]
        return Unit(
            name=name, members=(name,), ended=job.ended, submitted=job.submitted, bytes=job.bytes,
            deleted=job.deleted, noticed=job.noticed, is_orphaned=False,
        )  # fmt: skip
    ordered = sorted(jobs, key=lambda job: (job.job_id != name, job.job_id))
    first = ordered[0]
    return Unit(
        name=name,
        members=tuple(job.job_id for job in ordered),
        ended=max(job.ended for job in jobs) if all(job.ended for job in jobs) else 0.0,
        submitted=min(job.submitted for job in jobs),
        bytes=sum(job.bytes for job in jobs),
        deleted=first.deleted,
        noticed=first.noticed,
        is_orphaned=first.job_id != name,
    )


def references_among(
    facts: Iterable[JobFacts], units: Mapping[str, Unit], documents: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The units that jobs of other units need, each with one that needs it.

    Args:
        documents: the jobs that documents of the root folder name, each with the document.
    """
    unit_of = {job_id: unit.name for unit in units.values() for job_id in unit.members}
    needed: dict[str, str] = {}
    for job in facts:
        for name in job.names:
            target = unit_of.get(name)
            if target is not None and target != job.unit:
                needed.setdefault(target, f"job {job.job_id}")
    for job_id, document in (documents or {}).items():
        if job_id in unit_of:
            needed.setdefault(unit_of[job_id], document)
    return needed


def plan_jobs(
    facts: Sequence[JobFacts],
    rules: Rules,
    *,
    now: float,
    named: Mapping[str, str] | None = None,
    is_urgent: bool = False,
) -> SweepPlan:
    """Decide which jobs go.

    Args:
        now: in seconds since the epoch.
        named: the jobs that documents of the root folder name, each with the document.
        is_urgent: remove what users have deleted now, though it could still be restored.
    """
    units = units_of(facts)
    needed = references_among(facts, units, named)
    condemned, staying, problem = _condemned(units.values(), rules, now, needed.keys())
    deleted_after_s = LEAST_AGE_S if is_urgent else max(rules.keep_deleted_days * DAY_S, LEAST_AGE_S)
    remove: list[Unit] = []
    notices: list[Notice] = []
    withdrawn: list[str] = []
    references: dict[str, str] = {}
    for unit in sorted(units.values(), key=lambda each: each.name):
        if unit.deleted or unit.is_orphaned:
            if not unit.ended or unit.name in needed:
                references[unit.name] = needed.get(unit.name, "it runs")
            elif now - unit.deleted >= deleted_after_s or unit.is_orphaned:
                remove.append(unit)
            continue
        why = condemned.get(unit.name) or (staying.get(unit.name) if unit.noticed else None)
        if why is None or unit.name in needed:
            if why is not None:
                references[unit.name] = needed[unit.name]
            if unit.noticed:
                withdrawn.append(unit.name)
        elif not unit.noticed:
            notices.append(Notice(unit=unit.name, why=why, removed_at=_removed_at(rules, now)))
        elif now >= _removed_at(rules, unit.noticed) and now - unit.ended >= LEAST_AGE_S:
            remove.append(unit)
    going = {job_id for unit in remove for job_id in unit.members}
    return SweepPlan(
        remove=tuple(remove),
        notices=tuple(notices),
        withdrawn=tuple(withdrawn),
        strip_parts=_stripped(facts, rules.keep_parts_days, now, going, lambda job: job.parts_bytes),
        strip_logs=_stripped(facts, rules.keep_logs_days, now, going, lambda job: job.logs_bytes),
        references=references,
        problem=problem,
    )


def _removed_at(rules: Rules, noticed: float) -> float:
    return noticed + rules.keep_notice_days * DAY_S


def _condemned(
    units: Iterable[Unit], rules: Rules, now: float, needed: AbstractSet[str]
) -> tuple[dict[str, str], dict[str, str], str]:
    """Return the units that a rule removes, each with the rule; those that stay condemned once they were noticed; and
    why a limit can't be kept."""
    live = [unit for unit in units if not unit.deleted and not unit.is_orphaned]
    ended = sorted((unit for unit in live if unit.ended), key=lambda unit: (unit.ended, unit.name))
    notice_s = rules.keep_notice_days * DAY_S
    by_age = {
        unit.name: f"it ended {rules.keep_jobs_days:g} days before"
        for unit in ended
        if rules.keep_jobs_days and now >= unit.ended + rules.keep_jobs_days * DAY_S - notice_s
    }
    condemned, staying, problems = dict(by_age), dict(by_age), []
    free = [unit for unit in ended if unit.name not in needed]
    limits: tuple[tuple[int, str, Callable[[Unit], int]], ...] = (
        (rules.keep_jobs_bytes, "bytes", lambda unit: unit.bytes),
        (rules.keep_jobs, "jobs", lambda _: 1),
    )
    for limit, noun, size in limits:
        if not limit:
            continue
        growth = _growth(live, now, notice_s, size)
        total = sum(map(size, live))
        why = f"the folders of jobs may have {limit:,} {noun}"
        condemned.update((name, why) for name in _oldest(free, total - (limit * _MARGIN - growth), size))
        staying.update((name, why) for name in _oldest(free, total - (limit * _STAYING - growth), size))
        if growth > limit * _MARGIN:
            problems.append(f"{growth:,.0f} {noun} may come within a notice, and {limit:,} may stay")
    return condemned, staying, "; ".join(problems)


def _growth(units: Sequence[Unit], now: float, period_s: float, size: Callable[[Unit], int]) -> float:
    """Return how much may come within a period, by what has come in the last one, or since the first job, if that is
    later."""
    if not units or not period_s:
        return 0.0
    lately = sum(size(unit) for unit in units if unit.submitted > now - period_s)
    lasted_s = now - min(unit.submitted for unit in units)
    return _VARIATION * lately * period_s / min(max(lasted_s, DAY_S), period_s)


def _oldest(units: Iterable[Unit], excess: float, size: Callable[[Unit], int]) -> Iterator[str]:
    """Yield the oldest units that have so much together."""
    for unit in units:
        if excess <= 0:
            return
        excess -= size(unit)
        yield unit.name


def _stripped(
    facts: Iterable[JobFacts], days: float, now: float, going: AbstractSet[str], size: Callable[[JobFacts], int]
) -> tuple[str, ...]:
    """Return the completed jobs that no longer need something of theirs."""
    if not days:
        return ()
    return tuple(
        job.job_id
        for job in facts
        if job.is_completed and size(job) and now - job.ended >= days * DAY_S and job.job_id not in going
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """An uploaded file, or another one that only its age and its size decide about."""

    name: str
    bytes: int
    written: float


def plan_files(files: Iterable[StoredFile], *, days: float, most_bytes: int, now: float) -> list[str]:
    """Choose which files go, of those that nothing names: the old ones, then the oldest, until the rest may stay.

    Args:
        days: the age in days from which files go; 0: at no age.
        most_bytes: what all of them may have; 0: any number.
    """
    oldest = sorted(files, key=lambda file: (file.written, file.name))
    excess = sum(file.bytes for file in oldest) - most_bytes if most_bytes else 0
    chosen = []
    for file in oldest:
        age_s = now - file.written
        if (days and age_s >= days * DAY_S) or (excess > 0 and age_s >= LEAST_AGE_S):
            chosen.append(file.name)
            excess -= file.bytes
    return chosen
