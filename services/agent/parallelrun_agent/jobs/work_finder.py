"""The work finder: which jobs a node works for, and how its slots are shared among them."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

from parallelrun_agent.jobs.joining import LeftToAnother, OtherCompute, join_job
from parallelrun_agent.jobs.node_job import NodeJob
from parallelrun_agent.jobs.slot_sharing import SlotSharing
from parallelrun_agent.node_context import NodeContext
from parallelrun_agent.policy.fair_share import favours_of
from parallelrun_agent.policy.join_order import JoinOrder
from parallelrun_agent.policy.slot_quota import OwnersNode, most_workers
from parallelrun_agent.policy.worker import NEVER
from parallelrun_agent.settings import AgentSettings
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.unreadable import UNREADABLE, SkippedJobs
from parallelrun_core.service.pacing import Every
from parallelrun_core.service.telemetry import logger
from parallelrun_core.store.errors import NoPermissionError
from parallelrun_core.store.nodes import NodeRegistry
from parallelrun_core.store.registry import FOR_OTHERS, Registry
from parallelrun_core.store.slot_quotas import EVERYBODY, SlotQuota, SlotQuotas
from parallelrun_core.store.usage import UsageStore
from parallelrun_core.wire.states import JobState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parallelrun_core.store.connection import Redis
    from parallelrun_core.store.registry import ActiveJob

log = logger()

ANYWAY_S: Final = 0.25
"""How often a node without room polls nevertheless: a job that it works for may have ended."""
_REPORT_USE_S: Final = 10.0
_READ_PRIORITIES_S: Final = 2.0
"""How often a node finds out whether somebody has changed the priority of one of its jobs."""
_INTERVALS: Final = ((30.0, 0.5), (5.0, 0.2))
"""After so many seconds without any work, a node polls this often at most, unless there is a new job: an idle one
should cost next to nothing."""
_BEGINS_S: Final = 0.3
"""So long after a new job was seen, a node without work expects it to have something to do."""
_BEGINS_POLLS: Final = 5
"""How many times as often it polls then, if it has had work of late."""
_JOIN_AGAIN_S = 1.0


class WorkFinder:
    """Polls the list of jobs, joins those with something to do, and shares the slots among them.

    Args:
        jobs: those that the node works for, by their ids; joined ones are added.
    """

    def __init__(self, redis: Redis, settings: AgentSettings, context: NodeContext, jobs: dict[str, NodeJob]) -> None:
        self._redis = redis
        self._registry = Registry(redis, node=settings.node)
        self._settings = settings
        self._context = context
        self._jobs = jobs
        self._join_order = JoinOrder(settings.slots)
        self._sharing = SlotSharing(settings.slots, len(context.gpus.devices))
        self._usage: UsageStore | None = UsageStore(redis)
        self._reports_use = Every(_REPORT_USE_S)
        self._reads_priorities = Every(_READ_PRIORITIES_S)
        self._reads_quotas = Every(_READ_PRIORITIES_S)
        self._quota_owners: set[str] = set()
        """The owners whose quotas were read last."""
        self._quotas: SlotQuotas | None = SlotQuotas(redis)
        self._nodes = NodeRegistry(redis)
        self._skipped = SkippedJobs(settings.root)
        self._join_at: dict[str, float] = {}
        """When to try again to join jobs of which something could not be read or created."""
        self._others: set[str] = set()
        """Jobs of other computes, which need not be read again."""
        self._poll_at = 0.0  # by hand, as the intervals differ
        self._seen: set[str] = set()
        """The jobs that were there at the last poll."""
        self._begins_until = 0.0
        self._anyway = Every(ANYWAY_S)
        self._had_work_at: float | None = None

    def is_due(self, now: float) -> bool:
        """Return whether to poll: less often after some time without any work, and with no free slot."""
        if now < self._poll_at:
            return False
        self._poll_at = now + self._interval_s(now)
        if not (self._anyway.is_due(now) or self._has_room()):
            return False
        self._anyway.delay(now)
        return True

    def wait_s(self, now: float) -> float:
        """Return how long it isn't due."""
        return max(0.0, self._poll_at - now)

    def soon(self) -> None:
        """Be due at once: something has changed."""
        self._poll_at = 0.0

    def _interval_s(self, now: float) -> float:
        if self._jobs or self._had_work_at is None:
            self._had_work_at = now
        idle_s = now - self._had_work_at
        slowest_s = next((interval_s for after_s, interval_s in _INTERVALS if idle_s > after_s), 0.0)
        if not self._jobs and now < self._begins_until:
            # Of a thousand nodes that have been idle for longer, each poll costs Redis as much as one that finds work.
            return self._settings.poll_seconds / (1 if slowest_s else _BEGINS_POLLS)
        return max(self._settings.poll_seconds, slowest_s)

    def _has_room(self) -> bool:
        """Return whether one more worker could be busy here."""
        return self._free_slots() + max((job.slots_beyond for job in self._jobs.values()), default=0) > 0

    def _free_slots(self) -> int:
        """Return in how many slots one more worker could be busy."""
        workers = [worker for job in self._jobs.values() for worker in job.workers]
        return self._settings.slots - sum(not worker.is_through_init or bool(worker.in_flight) for worker in workers)

    def poll(self, now: float) -> None:
        """Join jobs that have something ready, and share the slots among all jobs.

        Raises redis-py's errors, and can be repeated after one.
        """
        active = self._registry.peek()
        self._note(active, now)
        waiting = self._work_for(active, now)
        jobs = [self._jobs[job_id] for job_id in waiting]
        if self._jobs and self._reads_priorities.is_due(now):
            for job_id, priority in self._registry.priorities(list(self._jobs)).items():
                self._jobs[job_id].prioritize(priority)
        owners = {job.owner for job in self._jobs.values() if job.owner}
        if owners and (self._reads_quotas.is_due(now) or owners - self._quota_owners):
            self._sharing.most_workers, self._quota_owners = self._most_workers(owners), owners
        self._sharing.share(jobs, waiting, {each.job_id: each.sessions for each in active}, now)
        if self._reports_use.is_due(now):
            self._report_use()
        self._poll_at = now + self._interval_s(now)  # sooner than it was, if there is work now

    def _note(self, active: Sequence[ActiveJob], now: float) -> None:
        """Take note of new jobs, and forget what was known of those that are not active any more."""
        active_ids = {each.job_id for each in active}
        if active_ids - self._seen:
            self._begins_until = now + _BEGINS_S
        self._seen = active_ids
        self._skipped.keep_only(active_ids)
        self._join_order.keep_only(active_ids - self._jobs.keys())
        self._others &= active_ids

    def _work_for(self, active: Sequence[ActiveJob], now: float) -> dict[str, int]:
        """Tell the jobs of this node how they stand, and join others; returns by job, in the order in which they are
        active, how many mini-batches wait for any node."""
        waiting: dict[str, int] = {}
        free_slots = self._free_slots()
        for job_id, state, ready, sessions in active:
            job = self._jobs.get(job_id)
            if job is not None:
                job.observed(state, max(0, ready), sessions)
                if ready == FOR_OTHERS:
                    job.drain(NEVER, now)
                elif not job.workers:
                    free_slots -= max(0, ready)
            elif job_id in self._others or state is not JobState.PROCESSING or now < self._join_at.get(job_id, 0.0):
                continue
            else:
                decision = self._join_order.decide(
                    job_id, ready=ready, sessions=sessions, free_slots=free_slots, now=now
                )
                job = self._join(job_id, now, asks=decision == "ask") if decision != "wait" else None
                free_slots -= ready if job is not None else 0
            if job is not None:
                waiting[job_id] = max(0, ready) + job.apart_count
        return waiting

    def _most_workers(self, owners: set[str]) -> dict[str, int]:
        """Return the workers that owners with a quota may have here. Most clusters have none, and read no nodes."""
        if self._quotas is None:
            return {}
        try:
            quotas = self._quotas.all()
        except NoPermissionError:  # of an earlier release
            log.warning("quotas_not_read", hint="write the users of Redis anew: parallelrun redis-acl")
            self._quotas = None
            return {}
        if owners.isdisjoint(quotas) and EVERYBODY not in quotas:
            return {}
        nodes = [info for info, is_alive in self._nodes.all() if is_alive]
        most = {}
        for owner in owners:
            quota = quotas.get(owner) or quotas.get(EVERYBODY) or SlotQuota()
            owner_nodes = [
                OwnersNode(each.node, each.slots, each.owners[owner]) for each in nodes if owner in each.owners
            ]
            if (count := most_workers(quota, self._settings.node, owner_nodes)) is not None:
                most[owner] = count
        return most

    def _report_use(self) -> None:
        """Add what owners have used here, and learn what they have used everywhere of late."""
        used = self._sharing.take_used()
        if not used or self._usage is None:
            return
        try:
            of_all = self._usage.add(used, now=time.time())
        except NoPermissionError:  # of an earlier release: slots are shared without it
            log.warning("usage_not_reported", hint="write the users of Redis anew: parallelrun redis-acl")
            self._usage = None
            return
        present = {job.owner for job in self._jobs.values()}
        self._sharing.favours = favours_of({owner: each for owner, each in of_all.items() if owner in present})

    def _join(self, job_id: str, now: float, *, asks: bool) -> NodeJob | None:
        folder = JobFolder(self._settings.root, job_id)
        may_join = partial(self._registry.is_first_to_join, job_id) if asks else None
        try:
            job = join_job(self._redis, folder, self._settings, self._context, may_join=may_join)
        except LeftToAnother:
            self._join_order.left_to_another(job_id)
            return None
        except OtherCompute:
            self._others.add(job_id)
            return None
        except UNREADABLE as error:
            self._skipped.report(job_id, error)
            if isinstance(error, OSError):  # it may pass, but not at once, and each attempt may be expensive
                self._join_at[job_id] = now + _JOIN_AGAIN_S
            return None
        self._join_at.pop(job_id, None)
        self._jobs[job_id] = job
        job.turn(now)
        return job
