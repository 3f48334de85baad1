"""Handing out: what waits on this node goes to its workers, or back to the queue. Pure, no I/O."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from parallelrun_agent.policy.apart_queue import ApartQueue
from parallelrun_agent.policy.commands import Command, SetWidth
from parallelrun_agent.policy.deliveries import Deliveries
from parallelrun_agent.policy.look_ahead import LookAhead
from parallelrun_agent.policy.membership import Membership
from parallelrun_agent.policy.worker_pool import WorkerPool


@dataclass(eq=False)
class HandOut:
    """Assigns deliveries to the workers of one job.

    Args:
        commands: gets what is to be done for it.
        apart: has the mini-batches whose items are run apart.
        membership: while the disk is full, no worker gets anything.
        speculates: whether a mini-batch that runs here may be delivered a second time.
    """

    commands: deque[Command]
    pool: WorkerPool
    apart: ApartQueue
    look_ahead: LookAhead
    deliveries: Deliveries
    """Deliveries of the present session."""
    membership: Membership
    speculates: bool

    def to_workers(self, now: float) -> None:
        """Assign the backlog to the workers; return it when none is left here to run it."""
        available = self.pool.available()
        disk_is_full = self.membership.disk_is_full
        if self.apart and available and not disk_is_full:
            self.deliveries.requeue(self.apart.take())
        if not self.deliveries.backlog:
            return
        if not available or disk_is_full:
            self.give_back(now)
            return
        if width := self.look_ahead.width:
            for worker in available:
                if worker.in_flight.width != width:
                    worker.in_flight.width = width
                    self.commands.append(SetWidth(worker, width))
            if self.speculates:
                self.commands += self.deliveries.hand_out_twins(available, self.look_ahead.depth, now)
        self.commands += self.deliveries.hand_out(available, self.look_ahead.depth, now)

    def give_back(self, now: float) -> None:
        """Return what no worker here can run soon; not what is known by now of items that are run apart."""
        self.apart.return_to(self.deliveries.take_isolated())
        self.deliveries.give_back_backlog(now)

    def release(self, now: float, *, is_idle: bool) -> None:
        """Let items be run apart of mini-batches that were held back, if it is time."""
        self.apart.release(now, is_idle=is_idle, nodes=self.deliveries.nodes)

    def give_back_held_up(self, ready: int, now: float) -> None:
        """Return what waits for nothing but slow heads."""
        if self.deliveries.backlog and self.pool.is_held_up(now):
            self.apart.return_to(self.deliveries.take_isolated())
            self.deliveries.give_back_held_up(self.look_ahead, self.pool.available(), ready, now)
