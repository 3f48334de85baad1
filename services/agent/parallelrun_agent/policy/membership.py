"""A node's membership in a job: the stage of its work for the job, and what it may do in that. Pure, no I/O.

                 the disk is full                    told to stop, or
         open ◀────────────────────▶ disk full       the budget is used up
           │        it has room          │
           ├─────────────────────────────┴───────────▶ draining
           │                                               │
           ╰──────────────────────────┬────────────────────╯
                                      ▼ the job takes no more results
                                    ended

The node leaves from `draining` and `ended` alone, once nothing runs here any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from parallelrun_agent.policy.deliveries import Deliveries
from parallelrun_agent.policy.worker import NEVER, Worker
from parallelrun_core.wire.states import JobState


class MembershipStage(NamedTuple):
    """Rules for a node in one stage of its membership."""

    begins_more: bool
    """True: the node leases mini-batches, starts workers, and hands out to them what waits here."""
    leaves: bool
    """True: the node leaves when no worker is left."""
    reports_first: bool
    """True: the node doesn't leave before everything that has ended here is reported."""


OPEN: Final = MembershipStage(begins_more=True, leaves=False, reports_first=True)
DISK_FULL: Final = MembershipStage(begins_more=False, leaves=False, reports_first=True)
DRAINING: Final = MembershipStage(begins_more=False, leaves=True, reports_first=True)
ENDED: Final = MembershipStage(begins_more=False, leaves=True, reports_first=False)


class Membership:
    """The membership of one node in one job, through all of its sessions."""

    def __init__(self) -> None:
        self.state: JobState | None = JobState.PROCESSING
        """The job's, as far as this node knows; None: Redis doesn't know the job any more."""
        self.ready = 0
        """Mini-batches that wait on Redis, as far as this node knows."""
        self.disk_is_full = False
        self.is_draining = False
        self.drain_by = NEVER
        """When a drain is to be over, however much still runs."""
        self.has_left = False
        self.stage = OPEN

    @property
    def is_over(self) -> bool:
        """Return whether there is nothing more to do: the node has left, or Redis doesn't know the job any more."""
        return self.has_left or self.state is None

    def observed(self, state: JobState | None, ready: int) -> bool:
        """Take over what Redis has of the job, as seen between two turns.

        Returns:
            Whether the job has left the state that this node knew, so that a turn must ask for it.
        """
        if state is JobState.PROCESSING:
            self.ready = max(self.ready, ready) if ready else 0
            return False
        return self.state is JobState.PROCESSING

    def job_is(self, state: JobState | None) -> None:
        """Take over the state of the job, as a turn has brought it."""
        if state is not self.state:
            self.state = state
            self._choose_stage()

    def disk_is(self, *, full: bool) -> None:
        """Take note whether the disk takes what is written to it."""
        self.disk_is_full = full
        self._choose_stage()

    def drain(self, by: float) -> bool:
        """Begin to drain, which is to be over `by` then; returns whether that is new. It can only get earlier."""
        self.drain_by = min(self.drain_by, by)
        if self.is_draining:
            return False
        self.is_draining = True
        self._choose_stage()
        return True

    def _choose_stage(self) -> None:
        """Enter the one that allows the least, of those that apply."""
        if self.state is not JobState.PROCESSING:
            self.stage = ENDED
        elif self.is_draining:
            self.stage = DRAINING
        else:
            self.stage = DISK_FULL if self.disk_is_full else OPEN

    def may_leave(self, workers: Sequence[Worker], deliveries: Deliveries) -> bool:
        """Return whether the node has done all that it must before it leaves. Outcomes that are still being made
        durable are not reported yet."""
        stage = self.stage
        return stage.leaves and not workers and (not stage.reports_first or deliveries.unreported <= 0)
