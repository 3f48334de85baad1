"""The leader's watch over nodes: it ends the sessions of lost ones, and chooses those that may work for the job."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from parallelrun_core.checks.disk_need import NodeDisk
from parallelrun_core.service.telemetry import logger
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.retry_policy import MiniBatchRetryPolicy
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.nodes import NodeInfo, NodeRegistry, fewer_workers
from parallelrun_core.wire.at_work import NodeWork
from parallelrun_core.wire.outcome import Outcome
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import NodeState
from parallelrun_master.policy.placing import NodePlace, Obstacle, all_obstacles, chosen

if TYPE_CHECKING:
    from parallelrun_master.settings import MasterSettings

log = logger()

_PREPARES_S = 30.0
_SAME_S: Final = 1.0
"""Times that differ by less are the same: a node computes them anew for each heartbeat."""
_NO_WORK: Final = NodeWork()
_NOBODY: Final = "-"
"""What no node is called: stands for an empty list, which would mean every node."""


class NodeWatch:
    """The nodes of one job, as they were at the last `check()`: those of its compute, and no others."""

    def __init__(self, nodes: NodeRegistry, queue: LeaderQueue, spec: JobSpec, settings: MasterSettings) -> None:
        self._nodes = nodes
        self._queue = queue
        self._spec = spec
        self._retries = MiniBatchRetryPolicy.of(spec)
        self._settings = settings
        self._kind = (spec.compute, spec.environment.node_image if spec.compute else "")
        """The compute and the image of its nodes."""
        self._assigned: list[str] | None = None
        self._is_assigned = spec.instance_count is None
        self.alive = 0
        """Nodes that may work for the job: no more than it asks for."""
        self.slots = 1
        """Workers that the job could have now; at least 1, so that limits derived from it make sense."""
        self.workers = 0
        """Workers that it could have on all nodes of its kind, those that take no more work included."""
        self.own_workers = 0
        """Workers that it could have on the nodes that were chosen for it, and take more."""
        self.started = 0
        """Workers that it has, by what nodes have said last."""
        self.obstacles: tuple[Obstacle, ...] = ()
        """What keeps workers of the job from all nodes that it may have; none if some node has a place for it, or
        there are no nodes."""
        self.has_place = False
        """Whether some node could have workers of the job now."""
        self.disks: tuple[NodeDisk, ...] = ()
        """Those of the nodes that the job may have, as they said last."""
        self.cut = ""
        """Words for a job that has fewer workers on a node than it asks for, as there are no more slots; or empty."""
        self.given_up: tuple[Outcome, ...] = ()
        """Mini-batches that were lost with their node too often: to be recorded."""
        self.work: tuple[NodeWork, ...] = ()
        """What each node does for the job, by what it has said last."""
        self._preparing: dict[str, float] = {}

    def prepares(self, node: str, now: float) -> None:
        """A node gets what the job's workers need; it reports that again soon if it takes longer."""
        self._preparing[node] = now + _PREPARES_S

    def has_prepared(self, node: str) -> None:
        self._preparing.pop(node, None)

    def preparing(self, now: float) -> int:
        """Return how many nodes are getting what the job's workers need: an environment, inputs."""
        return sum(until > now for until in self._preparing.values())

    def show_work(self, progress: Progress) -> None:
        """Show which mini-batch runs for longest, and which worker is in `init()` for longest."""
        starting = [work for work in self.work if work.init_since]
        first = min(starting, key=lambda work: work.init_since, default=_NO_WORK)
        if abs(first.init_since - progress.init_since) > _SAME_S:
            progress.init_since = first.init_since
        progress.init_limit_s = first.init_limit_s or progress.init_limit_s
        running = [work for work in self.work if work.longest_since]
        longest = min(running, key=lambda work: work.longest_since, default=_NO_WORK)
        if longest.longest != progress.longest or abs(longest.longest_since - progress.longest_since) > _SAME_S:
            progress.longest, progress.longest_since = longest.longest, longest.longest_since

    def start_over(self) -> None:
        """Redis may have forgotten which nodes were assigned: assign them again."""
        self._is_assigned = self._spec.instance_count is None

    def choose(self) -> None:
        """Assign the nodes of a job that asks for a number of them, if that has not been done.

        To be called before anything is published: until then, no other node begins anything for the job.

        Raises:
            Fenced: another term has begun.
        """
        if not self._is_assigned:
            self._refresh()

    def check(self) -> int:
        """Refresh what is known of the nodes, and end lost sessions; returns how many deliveries were lost with them.

        Raises:
            Fenced: another term has begun.
        """
        self._refresh()
        reaped = self._queue.reap(
            max_lost=self._retries.max_lost,
            max_lease_ms=self._settings.lease_ms,
            longest_pause_ms=round(1000 * self._retries.longest_pause_s),
        )
        self.given_up = reaped.given_up
        lost = reaped.returned + len(reaped.given_up)
        if reaped.sessions:
            log.warning(
                "sessions_lost", sessions=reaped.sessions, returned=reaped.returned, given_up=len(reaped.given_up)
            )
        return lost

    def _refresh(self) -> None:
        spec, now = self._spec, time.monotonic()
        nodes = [info for info, alive in self._nodes.all() if alive and (info.compute, info.image) == self._kind]
        ready = [info for info in nodes if info.state is NodeState.READY]
        if spec.instance_count is not None:
            self._assign(ready, spec.instance_count, now)
        mine = [info for info in ready if self._assigned is None or info.node in self._assigned]
        self.alive = min(len(nodes), spec.instance_count or len(nodes))
        self.own_workers = sum(self._workers_on(info) for info in mine)
        self.slots = max(1, self.own_workers)
        if (requested := spec.max_concurrency_per_instance) and not self.cut:
            self.cut = fewer_workers(requested, mine)
        self.disks = tuple(NodeDisk(info.node, self._workers_on(info), info.disk_free_bytes) for info in mine)
        self.workers = sum(self._workers_on(info) for info in nodes)
        self.started = sum(info.workers.get(self._queue.job_id, 0) for info in nodes)
        self.work = tuple(work for info in nodes if (work := info.work_for(self._queue.job_id)) is not None)
        full = [info for info in nodes if info.state is NodeState.DISK_FULL]
        self.obstacles = all_obstacles(self._obstacle(info, now) for info in (*mine, *full))
        self.has_place = bool(mine) and not self.obstacles

    def _obstacle(self, info: NodeInfo, now: float) -> Obstacle | None:
        if info.state is NodeState.DISK_FULL:
            return Obstacle.DISK
        if self._preparing.get(info.node, 0.0) > now:
            return Obstacle.PREPARATION
        is_taken = info.busy >= info.slots and self._queue.job_id not in info.workers
        return Obstacle.SLOTS if is_taken else None

    def _assign(self, ready: list[NodeInfo], count: int, now: float) -> None:
        """Choose the nodes of the job, up to the number that it asks for."""
        promised: Mapping[str, frozenset[str]] = {}
        if self._assigned is None:
            self._assigned = self._queue.assigned()
            if len(ready) > count:
                promised = self._queue.assigned_to_others()
        places = [self._place(info, promised, now) for info in ready]
        names = sorted(chosen(self._queue.job_id, places, self._assigned, count)) or [_NOBODY]
        if names != self._assigned or not self._is_assigned:
            self._queue.assign(names)
            log.info("nodes_assigned", job_id=self._queue.job_id, nodes=names)
            self._assigned, self._is_assigned = names, True

    def _place(self, info: NodeInfo, promised: Mapping[str, frozenset[str]], now: float) -> NodePlace:
        is_used = self._queue.job_id in info.workers or self._preparing.get(info.node, 0.0) > now
        begins_soon = sum(info.node in nodes and job not in info.workers for job, nodes in promised.items())
        free = min(self._workers_on(info), info.slots - info.busy) - begins_soon
        gpus = self._spec.gpus_of_worker
        fits = gpus is None or info.gpu_count >= gpus
        return NodePlace(info.node, free=free, is_used=is_used, fits=fits)

    def _workers_on(self, info: NodeInfo) -> int:
        return info.workers_of(self._spec.max_concurrency_per_instance, self._spec.gpus_of_worker)
