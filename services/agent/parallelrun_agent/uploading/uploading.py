"""The uploads of one session: what the job machine asks for, and what it is told. Used by the agent's one thread."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import cast

from parallelrun_agent.loop import EventLoop
from parallelrun_agent.policy.job_machine import JobMachine
from parallelrun_agent.policy.uploading_machine import UploadingJobMachine
from parallelrun_agent.uploading.uploader import Uploaded, Uploader
from parallelrun_agent.workers.leader_reports import LeaderReports
from parallelrun_agent.workers.plans import PlanMaker
from parallelrun_agent.workers.processes import WorkerProcesses
from parallelrun_core.service.telemetry import logger

log = logger()


class Uploading:
    """Opened with its session, and closed with it.

    Args:
        plans: know where the workers write, and clean up behind those that have ended.
        processes: keep the part file of a worker for as long as an outcome of it waits for its files.
        reports: get what could not be uploaded at a worker's end.
        events: gets `uploaded` and `rest_uploaded`.
        earlier: that of the job's session before.
    """

    def __init__(
        self,
        plans: PlanMaker,
        processes: WorkerProcesses,
        reports: LeaderReports,
        loop: EventLoop,
        events: AbstractContextManager[JobMachine],
        *,
        earlier: Uploading | None = None,
    ) -> None:
        self._plans, self._processes, self._reports = plans, processes, reports
        self._loop, self._events = loop, events
        self._wake, self._wake_end = os.pipe()
        for fd in (self._wake, self._wake_end):
            os.set_blocking(fd, False)
        self._uploader: Uploader = Uploader(
            plans.outputs.urls,
            plans.user,
            wake=self._wake_end,
            timeout_s=plans.upload_timeout_s,
            earlier=None if earlier is None else earlier._uploader,
        )
        loop.add(self._wake, self._on_done)

    def begin(self, process: str, mini_batch: int, token: str) -> None:
        """Upload what this worker has set aside."""
        self._processes.hold_part(process)
        self._uploader.begin(token, process, self._plans.outputs.set_aside(process, mini_batch))

    def begin_rest(self, process: str) -> None:
        """Upload what a worker has left that has ended in order."""
        self._uploader.begin(process, process, self._plans.outputs.rest(process), is_rest=True)

    def drop_rest(self, process: str) -> None:
        """Remove what a worker has left that did not end in order: it belongs to a try that has failed."""
        self._plans.drop(self._plans.outputs.rest(process))

    def poll(self, now: float) -> None:
        """End what takes too long. For calls a few times a second."""
        self._uploader.poll(now)

    def close(self) -> None:
        """Nobody waits for any of it any more."""
        self._uploader.close()
        self._loop.remove(self._wake)
        os.close(self._wake)
        os.close(self._wake_end)

    def _on_done(self) -> None:
        try:
            os.read(self._wake, 1 << 12)
        except BlockingIOError:
            return
        ended: list[Uploaded] = []
        with self._events as either:
            machine = cast(UploadingJobMachine, either)
            while self._uploader.done:
                ended.append(each := self._uploader.done.popleft())
                if each.is_rest:
                    machine.rest_uploaded(each.process)
                else:
                    machine.uploaded(each.key, each.failure)
        for each in ended:
            if each.is_rest:
                self._report_rest(each)
            else:
                self._processes.release_part(each.process)

    def _report_rest(self, ended: Uploaded) -> None:
        if ended.failure is not None:
            log.warning("rest_not_uploaded", process=ended.process, error=ended.failure.message)
            self._reports.phase_ended(ended.process, "SHUTDOWN", 0.0, ended.failure)
