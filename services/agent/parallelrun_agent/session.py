"""One session of a node in a job: everything that is opened again when the lease was lost.

A `NodeJob` lives as long as the node works for the job. Its session ends earlier when its lease does: whatever it held
then belongs to others, and the next session has another name, another journal and other part files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from parallelrun_agent.committer import Committer
from parallelrun_agent.loop import EventLoop
from parallelrun_agent.node.disk import DiskWatch
from parallelrun_agent.policy.job_machine import JobMachine
from parallelrun_agent.settings import AgentSettings
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.ids import new_session
from parallelrun_core.store.agent_queue import AgentQueue

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis


class Session:
    """Opened by the constructor. Used by the agent's one thread only.

    Args:
        machine: notified of what has become durable, and of what could not.
        execute: does what the machine asks for then.

    Raises:
        OSError: it can't be opened for now.
    """

    def __init__(
        self,
        redis: Redis,
        folder: JobFolder,
        settings: AgentSettings,
        loop: EventLoop,
        machine: JobMachine,
        *,
        generation: int,
        execute: Callable[[], None],
    ) -> None:
        self.name = new_session(settings.node)
        self.queue = AgentQueue(
            redis,
            folder.job_id,
            session=self.name,
            node=settings.node,
            lease_ms=settings.lease_ms,
            generation=generation,
        )
        self._loop = loop
        self._machine = machine
        self._execute = execute
        self._disk = DiskWatch(folder.parts, self.name, job_id=folder.job_id)
        self._wake, self._wake_end = os.pipe()
        os.set_blocking(self._wake, False)
        loop.add(self._wake, self._on_durable)
        self.committer = Committer(folder.journals / self.name, sync=settings.sync, wake=self._wake_end)

    def close(self) -> None:
        """After the end of its workers: make durable what they had answered, and free everything."""
        self.committer.stop()
        self._loop.remove(self._wake)
        os.close(self._wake)
        os.close(self._wake_end)

    def _on_durable(self) -> None:
        """Pass on what the committer's thread has finished."""
        try:
            os.read(self._wake, 1 << 12)
        except BlockingIOError:
            return
        now, committer, machine = time.monotonic(), self.committer, self._machine
        if committer.durable:
            self._disk.kept()
        while committer.durable:
            candidate = committer.durable.popleft()
            machine.kept(candidate.outcome, candidate.encoded, now)
        while committer.rows_missing:
            machine.rows_missing(committer.rows_missing.popleft().outcome)
        while committer.failed:
            candidate, error, part_is_lost = committer.failed.popleft()
            machine.not_kept(candidate.outcome, now, part_is_lost=part_is_lost)
            self.disk_failed(error)
        self._execute()

    def disk_failed(self, error: str) -> None:
        """Something could not be written: take nothing more until something can be."""
        now = time.monotonic()
        self._disk.failed(error, now)
        self._machine.disk_failed(now)

    def check_disk(self, now: float) -> None:
        """See, now and then, whether a full disk has room again."""
        self._disk.look(now)
        if self._machine.disk_is_full and not self._disk.is_full:
            self._machine.disk_has_room()
