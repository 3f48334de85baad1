"""A session of a node in a job: everything that is opened again when the lease was lost.

A `NodeJob` lives as long as the node works for the job. Its session ends earlier when its lease does: whatever it held
then belongs to others, and the next session has another name, another journal and other part files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING

from parallelrun_agent.node.disk import DiskWatch
from parallelrun_agent.node_context import NodeContext
from parallelrun_agent.policy.job_machine import JobMachine
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.staging.staging import Staging
from parallelrun_agent.uploading.uploading import Uploading
from parallelrun_agent.workers.committer import Committer
from parallelrun_agent.workers.leader_reports import LeaderReports
from parallelrun_agent.workers.plans import PlanMaker
from parallelrun_agent.workers.processes import WorkerProcesses
from parallelrun_core.folder.disk_floor import DiskFloor
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.session_keys import SessionKey
from parallelrun_core.ids import new_session
from parallelrun_core.store.agent_queue import AgentQueue
from parallelrun_core.store.seals import Seal

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis


class AgentSession:
    """Opened by the constructor. Used by the agent's one thread only.

    Args:
        events: what its workers, its committer and its disk report goes there.
        earlier: the one before, which is closed.
        open_staging: if its mini-batches have files that are elsewhere.

    Raises:
        OSError: it can't be opened for now.
    """

    def __init__(
        self,
        redis: Redis,
        folder: JobFolder,
        settings: AgentSettings,
        node: NodeContext,
        *,
        plans: PlanMaker,
        reports: LeaderReports,
        generation: int,
        events: AbstractContextManager[JobMachine],
        earlier: AgentSession | None = None,
        open_staging: Callable[[AbstractContextManager[JobMachine]], Staging] | None = None,
    ) -> None:
        self.name = new_session(settings.node)
        self._key = SessionKey(folder.keys, self.name)
        self._seal = Seal(self.name, self._key.value)
        self.queue = AgentQueue(
            redis, folder.job_id, session=self.name, node=settings.node, lease_ms=settings.lease_ms, seal=self._seal,
            generation=generation,
        )  # fmt: skip
        self.disk = DiskWatch(folder.parts, self.name, job_id=folder.job_id, floor=DiskFloor(settings.disk_floor_bytes))
        self._events = events
        with ExitStack() as opened:
            self._wake, wake_end = os.pipe()
            opened.callback(os.close, wake_end)
            opened.callback(os.close, self._wake)
            os.set_blocking(self._wake, False)
            node.loop.add(self._wake, self._on_durable)
            opened.callback(node.loop.remove, self._wake)
            self.committer = Committer(
                folder.journals / self.name, sync=settings.sync, wake=wake_end, prepare=self._key.publish
            )
            opened.callback(self.committer.stop)
            self.processes: WorkerProcesses = WorkerProcesses(
                self.name, plans, node, committer=self.committer, reports=reports, events=events,
                spent_nano=0 if earlier is None else earlier.processes.spent_nano(),
            )  # fmt: skip
            self.staging = open_staging(events) if open_staging is not None else None
            """There if files are brought to the node before its workers get them."""
            if self.staging is not None:
                opened.callback(self.staging.close)
            opened.callback(self.processes.kill_all)
            self.uploading: Uploading | None = None
            """There if its workers write into folders of stores."""
            if plans.outputs.urls:
                before = None if earlier is None else earlier.uploading
                self.uploading = Uploading(plans, self.processes, reports, node.loop, events, earlier=before)
                opened.callback(self.uploading.close)
            self._opened = opened.pop_all()

    @property
    def seal(self) -> Seal:
        """Return what its reports to the leader carry.

        Raises:
            OSError: leaders can't read its key for now.
        """
        self._key.publish()
        return self._seal

    def close(self) -> None:
        """End its workers, make durable what they had answered, and free everything. Twice does no harm."""
        self._opened.close()

    def _on_durable(self) -> None:
        """Pass on what the committer's thread has finished."""
        try:
            os.read(self._wake, 1 << 12)
        except BlockingIOError:
            return
        now, committer = time.monotonic(), self.committer
        if committer.durable:
            self.disk.stored()
        with self._events as machine:
            while committer.durable:
                outcome, encoded = committer.durable.popleft()
                machine.stored(outcome, encoded, now)
            while committer.rows_missing:
                machine.rows_missing(committer.rows_missing.popleft().outcome)
            while committer.not_stored:
                candidate, error, part_is_lost = committer.not_stored.popleft()
                machine.not_stored(candidate.outcome, now, part_is_lost=part_is_lost)
                machine.disk_failed(error, now)

    def check_disk(self, now: float) -> None:
        """Look, now and then, whether a disk is below its floor, or one that was full has room again."""
        if problem := self.disk.below_floor(now):
            with self._events as machine:
                machine.disk_failed(problem, now)
        elif self.disk.poll(now):
            with self._events as machine:
                machine.disk_has_room()
