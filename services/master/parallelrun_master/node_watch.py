"""How a leader watches the nodes: it ends the sessions of lost ones, and chooses those that may work for the job."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from parallelrun_core.outcome import Outcome
from parallelrun_core.service.telemetry import logger
from parallelrun_core.spec import JobSpec
from parallelrun_core.states import NodeState
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.nodes import NodeInfo, Nodes
from parallelrun_master.policy.placing import Place, chosen

if TYPE_CHECKING:
    from parallelrun_master.settings import MasterSettings

log = logger()

_PREPARES_S = 30.0


class NodeWatch:
    """The nodes of one job, as they were at the last `check()`: those of its compute, and no others."""

    def __init__(self, nodes: Nodes, queue: LeaderQueue, spec: JobSpec, settings: MasterSettings) -> None:
        self._nodes = nodes
        self._queue = queue
        self._spec = spec
        self._settings = settings
        self._kind = (spec.compute, spec.environment.node_image if spec.compute else "")
        """The compute and the image of its nodes."""
        self._assigned: list[str] | None = None
        self._is_assigned = False
        self.alive = 0
        self.slots = 1
        """Workers that the job could have now; at least 1, so that limits derived from it make sense."""
        self.workers = 0
        """The same, with those of nodes that take no more work."""
        self.own_workers = 0
        """Workers that it could have on the nodes that were chosen for it, and take more."""
        self.are_full = False
        """Whether nodes are alive, and the disks of all of them are full: then the job has to wait."""
        self.are_taken = False
        """Whether all nodes that the job may have are there, and other jobs use all of their slots."""
        self.has_own = False
        """Whether a node is there of whose slots other jobs leave some to this one."""
        self.given_up: tuple[Outcome, ...] = ()
        """Mini-batches that were lost with their node too often: to be recorded."""
        self._preparing: dict[str, float] = {}

    def prepares(self, node: str, now: float) -> None:
        """A node gets what the job's workers need; it reports that again soon if it takes longer."""
        self._preparing[node] = now + _PREPARES_S

    def has_prepared(self, node: str) -> None:
        """A worker of this node has started."""
        self._preparing.pop(node, None)

    def preparing(self, now: float) -> int:
        """How many nodes are getting what the job's workers need: an environment, inputs."""
        return sum(until > now for until in self._preparing.values())

    def start_over(self) -> None:
        """Redis may have forgotten which nodes were assigned: assign them again."""
        self._is_assigned = False

    def check(self) -> int:
        """Refresh what is known of the nodes, and end lost sessions; returns how many deliveries were lost with them.

        Raises:
            Fenced: another term has begun.
        """
        nodes = [info for info, alive in self._nodes.all() if alive and (info.compute, info.image) == self._kind]
        ready = [info for info in nodes if info.state is NodeState.READY]
        self.alive = len(nodes)
        self.are_full = bool(nodes) and all(info.state is NodeState.DISK_FULL for info in nodes)
        most = self._spec.max_concurrency_per_instance
        self.slots = max(1, sum(min(info.slots, most or info.slots) for info in ready))
        self.workers = sum(min(info.slots, most or info.slots) for info in nodes)
        if self._spec.instance_count is not None:
            self._assign([self._place(info, time.monotonic()) for info in ready], self._spec.instance_count)
        mine = [info for info in ready if self._assigned is None or info.node in self._assigned]
        self.own_workers = sum(min(info.slots, most or info.slots) for info in mine)
        taken = [info.busy >= info.slots and self._queue.job_id not in info.workers for info in mine]
        self.are_taken = len(taken) >= (self._spec.instance_count or 1) and all(taken)
        self.has_own = not all(taken)
        reaped = self._queue.reap(max_lost=self._spec.lost_leases, max_lease_ms=self._settings.lease_ms)
        self.given_up = reaped.given_up
        lost = reaped.returned + len(reaped.given_up)
        if reaped.sessions:
            log.warning(
                "sessions_lost", sessions=reaped.sessions, returned=reaped.returned, given_up=len(reaped.given_up)
            )
        return lost

    def _place(self, info: NodeInfo, now: float) -> Place:
        is_used = self._queue.job_id in info.workers or self._preparing.get(info.node, 0.0) > now
        return Place(info.node, has_room=info.busy < info.slots, is_used=is_used)

    def _assign(self, ready: list[Place], count: int) -> None:
        """Choose the nodes of the job, up to the number that it asks for."""
        names = sorted(chosen(self._queue.job_id, ready, self._assigned or (), count))
        if names != self._assigned or not self._is_assigned:
            self._queue.assign(names or ["-"])
            self._assigned, self._is_assigned = names, True
            self.alive = min(self.alive, len(names))
