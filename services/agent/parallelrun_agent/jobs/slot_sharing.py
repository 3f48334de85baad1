"""Slot sharing: gives a node's slots to the jobs that it works for, by the policy of fair shares.

A worker is taken back only when it has ended what it runs, and only after it has worked ten times as long as its own
init() took. Starting counts as used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from parallelrun_agent.jobs.node_job import NodeJob
from parallelrun_agent.node.memory import available_bytes
from parallelrun_agent.policy.fair_share import (
    URGENT_FAVOUR,
    WEIGHTS,
    Account,
    Claim,
    ahead_after,
    local_demand,
    parts,
    targets,
    to_take_back,
    within_gpus,
)
from parallelrun_agent.policy.node_work import Share, time_to_work
from parallelrun_agent.policy.worker import Worker
from parallelrun_core.store.usage import Used

_PLACE_S: Final = 30.0
"""As many more nodes may take slots for the same mini-batches after so long, while nobody takes one of them."""
_FORGET_S: Final = 3600.0
"""Who had no job here for so long is new again."""


@dataclass(slots=True)
class _Standing:
    """The account of a job, or of an owner, on this node."""

    ahead_s: float = 0.0
    part: float = 0.0
    start_s: float = 0.0
    resident_bytes: int = 0
    is_new: bool = True
    seen_at: float = 0.0
    place: int = 0
    """The number of nodes that worked for the job before this one."""
    ready: int = 0
    """Mini-batches that waited for any node when it was looked at last."""
    moved_at: float = 0.0
    """The time at which any node took a mini-batch last."""


@dataclass(slots=True)
class SlotSharing:
    """Shares the slots of one node.

    Args:
        slots: workers that run here at the same time.
        gpus: GPUs of the node, which are counted apart.
        available: the memory that more processes can have here.
    """

    slots: int
    gpus: int = 0
    available: Callable[[], int | None] = available_bytes
    used: dict[str, Used] = field(default_factory=dict)
    """The use of each owner since it was last reported."""
    favours: Mapping[str, float] = field(default_factory=dict)
    """Factors on the equal parts of owners, by what they have used of late."""
    most_workers: Mapping[str, int] = field(default_factory=dict)
    """Workers that owners may have here, by their quotas of slots and nodes; others may have any number."""
    _standings: dict[str, _Standing] = field(default_factory=dict)
    _owners: dict[str, _Standing] = field(default_factory=dict)
    _counted_at: float = 0.0
    _awaiting: dict[str, int] = field(default_factory=dict)
    """By job: free slots that are kept for its next workers until there is a template of them."""

    def share(self, jobs: Sequence[NodeJob], ready: Mapping[str, int], sessions: Mapping[str, int], now: float) -> None:
        """Start workers in free slots, and end others for jobs that have less than their part.

        Args:
            jobs: those that the node works for, the oldest first.
            ready: mini-batches of each that wait for any node.
            sessions: how many nodes work for each, as far as is known; when it is seen first, those before this one.
            now: monotonic.
        """
        self._count(jobs, sessions, now)
        self._awaiting.clear()
        demand = {job.job_id: job.wanted_workers(now) for job in jobs if ready.get(job.job_id, 0) > 0}
        with_claims = [job for job in jobs if job.workers or demand.get(job.job_id, 0) > 0]
        if len(with_claims) == 1 and with_claims[0].owner not in self.most_workers:
            with_claims[0].share = Share()
            self._fill(with_claims[0], demand.get(with_claims[0].job_id, 0), self._free(jobs), now)
            return
        if with_claims:
            self._share_among(with_claims, demand, self._local(ready, sessions, now), now)

    def _share_among(
        self, jobs: list[NodeJob], demand: Mapping[str, int], local: Mapping[str, int], now: float
    ) -> None:
        shares = self._targets(jobs, demand, local)
        for job in jobs:
            job.share = Share(target=shares[job.job_id])
        missing = 0  # slots that jobs are to have, and that are not free
        reserved = 0  # of these, those of jobs without any worker: nobody else gets what is free beside its part
        for job in sorted(jobs, key=lambda each: _held(each) - shares[each.job_id]):
            short = min(demand.get(job.job_id, 0), shares[job.job_id] - _held(job))
            if short > 0:
                job.share.lacks_memory = not self._has_memory_for(job, jobs)
                started = 0 if job.share.lacks_memory else self._fill(job, short, self._free_for(job, jobs), now)
                missing += short - started
                reserved += short - started if not job.workers else 0
        for job in jobs:
            free = min(self._free_for(job, jobs) - reserved, self._left_of_quota(job, jobs))
            if free > 0 and demand.get(job.job_id, 0) > 0:  # nobody else can use them
                more = job.wanted_workers(now) - self._awaiting.get(job.job_id, 0)
                self._fill(job, min(more, self._left_of_quota(job, jobs)), free, now)
        missing += sum(self._beyond_quota(owner, jobs) for owner in self.most_workers)
        missing -= sum(not worker.keeps_its_slot for job in jobs for worker in job.workers)
        if missing > 0:
            self._make_room(jobs, shares, missing, now)

    def _targets(self, jobs: list[NodeJob], demand: Mapping[str, int], local: Mapping[str, int]) -> dict[str, int]:
        """The number of workers that each job is to have here."""
        urgent = {job.account: URGENT_FAVOUR for job in jobs if job.account != job.owner}
        favour_of = {**self.favours, **urgent}
        accounts = {
            owner: Account(favour=favour_of.get(owner, 1.0), ahead_s=standing.ahead_s, is_new=standing.is_new)
            for owner, standing in self._owners.items()
        }
        claims = [self._claim(job, demand.get(job.job_id, 0), local.get(job.job_id, 0)) for job in jobs]
        claims = self._within_quotas(jobs, claims)
        if self.gpus:
            claims = within_gpus(self.gpus, claims, {job.job_id: job.gpus_of_worker for job in jobs}, accounts)
        for standing in self._owners.values():
            standing.part = 0.0
        for job in jobs:
            self._owners[job.account].part += (part := parts(self.slots, claims, accounts)[job.job_id])
            self._standings[job.job_id].part = part
        return targets(self.slots, claims, accounts)

    def _fill(self, job: NodeJob, demand: int, free: int, now: float) -> int:
        """Start workers of a job in free slots, and beyond them as far as it may; returns how many.

        Where they are better started in a moment, their slots are kept for them, and count as taken.
        """
        beyond = max(0, job.slots_beyond - self._taken(job))
        count = max(0, min(demand, free + beyond))
        if count > 0 and job.awaits_template(now):
            self._awaiting[job.job_id] = self._awaiting.get(job.job_id, 0) + count
            return count
        for _ in range(count):
            job.spawn()
        return count

    def _taken(self, job: NodeJob) -> int:
        """Return the number of workers that a job has, and of those for which slots are kept."""
        return len(job.workers) + self._awaiting.get(job.job_id, 0)

    def _make_room(self, jobs: list[NodeJob], shares: Mapping[str, int], missing: int, now: float) -> None:
        """End idle workers, or else let others end after what they run."""
        short = {job.job_id for job in jobs if _held(job) < shares[job.job_id]}
        for job in jobs:
            while missing > 0 and job.job_id not in short and job.end_idle_worker(now):
                missing -= 1
        surplus = [(max(0, _held(job) - shares[job.job_id]), job.workers) for job in jobs]
        job_of = {worker: job for job in jobs for worker in job.workers}
        for worker in to_take_back(missing, surplus, lambda each: _eagerness(each, now)):
            job_of[worker].take_back(worker)

    def _claim(self, job: NodeJob, demand: int, local: int) -> Claim:
        standing = self._standings[job.job_id]
        keeping = [worker for worker in job.workers if worker.keeps_its_slot]
        idle = sum(worker.is_through_init and not worker.in_flight for worker in keeping)
        busy = len(keeping) - idle + min(idle, local + job.waiting)
        return Claim(
            name=job.job_id,
            owner=job.account,
            demand=max(0, busy - job.slots_beyond) + max(0, min(demand, local)),
            held=_held(job),
            weight=WEIGHTS.get(job.priority, WEIGHTS["high"]),
            ahead_s=standing.ahead_s,
            start_s=standing.start_s,
            is_new=standing.is_new,
        )

    def _within_quotas(self, jobs: list[NodeJob], claims: list[Claim]) -> list[Claim]:
        """Claims of no more workers than the quotas of their owners allow here, divided by weight among their jobs."""
        owner_of = {job.job_id: job.owner for job in jobs}
        demand = {claim.name: claim.demand for claim in claims}
        for owner, most in self.most_workers.items():
            owner_claims = [claim for claim in claims if owner_of[claim.name] == owner]
            demand |= {name: min(demand[name], count) for name, count in targets(most, owner_claims).items()}
        return [replace(claim, demand=demand[claim.name]) for claim in claims]

    def _left_of_quota(self, job: NodeJob, jobs: list[NodeJob]) -> int:
        """Return how many more workers the owner of a job may have here."""
        most = self.most_workers.get(job.owner)
        if most is None:
            return self.slots + job.slots_beyond
        return most - sum(self._taken(each) for each in jobs if each.owner == job.owner)

    def _beyond_quota(self, owner: str, jobs: list[NodeJob]) -> int:
        """Return how many workers an owner has here beyond their quota, which has got smaller."""
        count = sum(worker.keeps_its_slot for job in jobs if job.owner == owner for worker in job.workers)
        return max(0, count - self.most_workers[owner])

    def _local(self, ready: Mapping[str, int], sessions: Mapping[str, int], now: float) -> dict[str, int]:
        """The part of what waits for which this node takes slots from other jobs.

        The first nodes of a job begin, so that one takes even its only mini-batch. While nobody has, more nodes do,
        beside those: it may take long until a slot of theirs is free.
        """
        local = {}
        for job_id, count in ready.items():
            standing = self._standings[job_id]
            nodes = sessions.get(job_id, 0) + (not standing.moved_at)  # this one is not among them at first
            if count < standing.ready or not standing.ready:
                standing.moved_at = now
            standing.ready = count
            turns = 1 + int((now - standing.moved_at) / _PLACE_S)
            local[job_id] = min(count, local_demand(count * turns, nodes, standing.place))
        return local

    def _free(self, jobs: Sequence[NodeJob]) -> int:
        return self.slots - sum(max(0, self._taken(job) - job.slots_beyond) for job in jobs)

    def _add_use(self, job: NodeJob, elapsed_s: float) -> None:
        before = self.used.get(job.owner, Used())
        on_gpus = min(self.gpus, float(len(job.workers) * job.gpus_of_worker))
        self.used[job.owner] = Used(before.slot_s + elapsed_s * len(job.workers), before.gpu_s + elapsed_s * on_gpus)

    def take_used(self) -> dict[str, Used]:
        """The use that is to be reported; nothing while all jobs are those of whoever runs the server."""
        used, self.used = self.used, {}
        return used if any(used) else {}

    def _free_for(self, job: NodeJob, jobs: Sequence[NodeJob]) -> int:
        """Free slots, and on a node with GPUs no more than there are GPUs for: one more worker would have none."""
        free = self._free(jobs)
        if not self.gpus:
            return free
        gpus_taken = sum(self._taken(each) * each.gpus_of_worker for each in jobs)
        return min(free, int((self.gpus - gpus_taken) / job.gpus_of_worker))

    def _has_memory_for(self, job: NodeJob, jobs: Sequence[NodeJob]) -> bool:
        """Return whether there is memory for one more worker of a job, beside those of others. One that had none here
        is expected to need as much as those do."""
        sizes = [each.resident_bytes() for each in jobs if each is not job and each.workers]
        if not sizes:
            return True
        standing = self._standings[job.job_id]
        standing.resident_bytes = max(standing.resident_bytes, job.resident_bytes())
        available = self.available()
        return available is None or available >= (standing.resident_bytes or max(sizes))

    def _count(self, jobs: Sequence[NodeJob], sessions: Mapping[str, int], now: float) -> None:
        """Count what each job and each owner has used since the last time."""
        elapsed_s = max(0.0, now - self._counted_at) if self._counted_at else 0.0
        self._counted_at = now
        held_by = dict.fromkeys([*self._owners, *(job.account for job in jobs)], 0)
        for job in jobs:
            newcomer = _Standing(place=sessions.get(job.job_id, 0))
            standing = self._standings.setdefault(job.job_id, newcomer)
            standing.start_s = max((worker.start_s for worker in job.workers), default=0.0) or standing.start_s
            _count_one(standing, len(job.workers), elapsed_s, now)
            held_by[job.account] += len(job.workers)
            self._add_use(job, elapsed_s)
        for owner, held in held_by.items():
            _count_one(self._owners.setdefault(owner, _Standing(seen_at=now)), held, elapsed_s, now)
        present = {job.job_id for job in jobs}
        self._standings = {name: each for name, each in self._standings.items() if name in present}
        self._owners = {name: each for name, each in self._owners.items() if now - each.seen_at < _FORGET_S}


def _count_one(standing: _Standing, held: int, elapsed_s: float, now: float) -> None:
    standing.ahead_s = ahead_after(standing.ahead_s, held, standing.part, elapsed_s)
    standing.part = float(held)  # until it has a part again: alone, nobody is ahead
    if held:
        standing.is_new, standing.seen_at = False, now


def _held(job: NodeJob) -> int:
    """Return the number of slots that its workers keep, without those beyond the slots."""
    return max(0, sum(worker.keeps_its_slot for worker in job.workers) - job.slots_beyond)


def _eagerness(worker: Worker, now: float) -> float | None:
    """Return how long a worker has run its mini-batch: the one that has for longest is taken back.

    None: it has not worked long enough to be taken back.
    """
    if worker.stage != "ready" or time_to_work(worker, now) > 0:
        return None
    return worker.in_flight.running_s(now) if worker.in_flight else float("inf")
