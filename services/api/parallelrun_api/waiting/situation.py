"""The situation of a job that may wait: its state, its nodes, and the other jobs there, as they are now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from parallelrun_core.computes.images import image_of
from parallelrun_core.errors import NotFound
from parallelrun_core.folder.control import NO_CONTROL, Control, effective_control
from parallelrun_core.folder.disk_floor import DiskFloor
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.limits.definition import limit_catalog
from parallelrun_core.store.connection import Redis
from parallelrun_core.store.job_views import JobViews, LimitNow
from parallelrun_core.store.nodes import NodeInfo, NodeRegistry
from parallelrun_core.store.registry import JobStatus, Registry
from parallelrun_core.store.rq.wake import LeadQueue, lead_queue
from parallelrun_core.wire import pace
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState, NodeState


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """Another job that has workers on nodes which this one may have, too."""

    job_id: str
    owner: str
    workers: int
    progress: Progress
    frees_in_s: float
    """Seconds until one of its workers may be taken back at the end of its mini-batch: when the worker has worked ten
    times as long as its init() took."""

    def slot_in_s(self, now: float) -> float | None:
        """Return the seconds until it gives a slot: when it has ended, or may lose a worker; None: nobody knows."""
        ends_in_s = pace.left_s(self.progress, now)
        usual_s = pace.mini_batch_s(self.progress, now)
        if usual_s is None:
            return ends_in_s
        longest_left_s = pace.longest_left_s(self.progress, now)
        next_end_s = usual_s / max(1, self.workers)  # they end one after the other
        if longest_left_s is not None:
            next_end_s = min(next_end_s, longest_left_s) if self.workers > 1 else longest_left_s
        gives_in_s = max(self.frees_in_s, next_end_s)
        return gives_in_s if ends_in_s is None else min(gives_in_s, ends_in_s)


@dataclass(frozen=True, kw_only=True)
class Situation:
    """All that bears on whether a job runs now."""

    now: float
    """By Redis' clock, in seconds since the epoch."""
    job_id: str
    record: JobRecord
    state: JobState
    progress: Progress = field(default_factory=Progress)
    is_led: bool = False
    lead_queue: LeadQueue = field(default_factory=lambda: LeadQueue(masters=0, busy=0, before=None))
    floor_problem: str = ""
    control: Control = NO_CONTROL
    nodes: tuple[NodeInfo, ...] = ()
    """Nodes that are alive and of the kind that the job needs."""
    other_nodes: int = 0
    """Nodes that are alive and of another kind."""
    chosen: frozenset[str] | None = None
    """Names of the nodes that were chosen for a job which asks for a number of them; None: any node of its kind may
    work for it."""
    neighbours: tuple[Neighbour, ...] = ()
    """Other jobs on these nodes, those with the most workers first."""
    slot_limits: tuple[int | None, int | None] = (None, None)
    """The most slots and nodes that the job's owner may have at the same time; None: any number."""
    owners_workers: Mapping[str, int] = field(default_factory=dict)
    """Workers for jobs of the owner, by node."""
    missing_limits: tuple[str, ...] = ()
    """Names of rate limits that nobody has defined."""
    slowed_limits: Mapping[str, float] = field(default_factory=dict)
    """Seconds for which the services behind rate limits want no calls, by the limit's name."""
    limit_shares: Mapping[str, float] = field(default_factory=dict)
    """Parts of the rates of limits that are left since their services have refused calls, by the limit's name."""

    @property
    def usable(self) -> list[NodeInfo]:
        """The nodes that take work of this job."""
        return [
            info
            for info in self.nodes
            if info.state is NodeState.READY and (self.chosen is None or info.node in self.chosen)
        ]

    @property
    def slot_in_s(self) -> float | None:
        """The seconds until one of the other jobs gives a slot; None: nobody knows."""
        estimates = [each.slot_in_s(self.now) for each in self.neighbours]
        return min((each for each in estimates if each is not None), default=None)

    @property
    def own_workers(self) -> int:
        return sum(info.workers.get(self.job_id, 0) for info in self.nodes)


@dataclass(frozen=True, kw_only=True)
class SituationReader:
    """Reads situations. Safe to share between threads.

    Args:
        owner_of: the owner of a job by its id; None: nobody can read whose it is.
        slot_limits_of: the most slots and nodes of an owner.
    """

    root: Path
    redis: Redis
    registry: Registry
    views: JobViews
    nodes: NodeRegistry
    floor: DiskFloor
    owner_of: Callable[[str], str | None]
    slot_limits_of: Callable[[str], tuple[int | None, int | None]]

    def standing(self, job_id: str) -> JobStatus | None:
        """Return what Redis knows of a job; None: nothing. Raises RedisError."""
        try:
            return self.registry.status(job_id)
        except NotFound:
            return None

    def read(self, folder: JobFolder, status: JobStatus | None) -> Situation:
        """Return the situation of a job that has not ended.

        Raises:
            NotFound, NewerSchema, CorruptLog: there is no such job, or its record can't be read.
            RedisError: Redis is away.
        """
        record = folder.record()
        state = status.state if status is not None else JobState.QUEUED
        progress = status.progress if status is not None else Progress()
        is_led = self.registry.has_leader(folder.job_id)
        common = {
            "now": self.registry.now(),
            "job_id": folder.job_id,
            "record": record,
            "state": state,
            "progress": progress,
            "is_led": is_led,
            "control": effective_control(folder, record),
            "floor_problem": self.floor.problem(folder.path),
        }
        if not is_led:
            common["lead_queue"] = lead_queue(self.redis, folder.job_id)
        if record.is_pipeline or state is not JobState.PROCESSING:
            return Situation(**common)  # type: ignore[arg-type]
        alive = [info for info, is_alive in self.nodes.all() if is_alive]
        kind = (str(record.spec.get("compute") or ""), image_of(record.spec))
        own_kind = tuple(info for info in alive if (info.compute, info.image) == kind)
        chosen = self.views.chosen_nodes(folder.job_id) if record.spec.get("instance_count") else None
        missing, limits = self._limits(record)
        return Situation(
            **common,  # type: ignore[arg-type]
            nodes=own_kind,
            other_nodes=len(alive) - len(own_kind),
            chosen=chosen,
            neighbours=self._neighbours(folder.job_id, own_kind),
            slot_limits=self.slot_limits_of(record.owner),
            owners_workers={info.node: count for info in alive if (count := info.owners.get(record.owner, 0))},
            missing_limits=missing,
            slowed_limits={name: now.pause_s for name, now in limits.items() if now.pause_s > _WORTH_TELLING_S},
            limit_shares={name: now.share for name, now in limits.items() if now.share < _SHARE_WORTH_TELLING},
        )

    def _neighbours(self, job_id: str, nodes: tuple[NodeInfo, ...]) -> tuple[Neighbour, ...]:
        workers: dict[str, int] = {}
        frees_in_s: dict[str, float] = {}
        for info in nodes:
            for other, count in info.workers.items():
                if other != job_id:
                    workers[other] = workers.get(other, 0) + count
                    work = info.work.get(other)
                    soonest = work.frees_in_s if work is not None else 0.0
                    frees_in_s[other] = min(frees_in_s.get(other, soonest), soonest)
        statuses = self.registry.statuses(list(workers))
        neighbours = [
            Neighbour(
                job_id=other,
                owner=self.owner_of(other) or "",
                workers=count,
                progress=statuses[other].progress if other in statuses else Progress(),
                frees_in_s=frees_in_s[other],
            )
            for other, count in workers.items()
        ]
        return tuple(sorted(neighbours, key=lambda each: (-each.workers, each.job_id)))

    def _limits(self, record: JobRecord) -> tuple[tuple[str, ...], dict[str, LimitNow]]:
        names = record.spec.get("rate_limits")
        if not isinstance(names, list) or not names:
            return (), {}
        catalog = limit_catalog(self.root)
        missing = tuple(str(name) for name in names if str(name) not in catalog)
        return missing, self.views.limits([str(name) for name in names])


_WORTH_TELLING_S = 2.0
"""Permits are spread over time, so a limit always makes calls wait a bit."""
_SHARE_WORTH_TELLING = 0.9
