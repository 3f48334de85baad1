"""A job on one node: all that belongs to it, and what the agent can have it do.

Decisions are in `policy`; `job_driver.py` executes them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from parallelrun_agent.environments.job_python import JobPython
from parallelrun_agent.jobs.at_work import AtWorkReports
from parallelrun_agent.jobs.job_driver import JobDriver
from parallelrun_agent.node.memory import resident_bytes
from parallelrun_agent.node.monitor import ResourceMonitor
from parallelrun_agent.policy.node_work import Share, work_of
from parallelrun_agent.policy.worker import Worker
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.stacks.answering import StackAnswers
from parallelrun_agent.staging.job_stage import JobStage
from parallelrun_agent.workers.job_code import JobCode
from parallelrun_agent.workers.job_tracking import JobTracking
from parallelrun_agent.workers.leader_reports import LeaderReports
from parallelrun_agent.workers.plans import PlanMaker
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.service import failpoints
from parallelrun_core.service.telemetry import logger
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.nodes import StacksRequest
from parallelrun_core.store.outcome_stream import report_preparing
from parallelrun_core.wire.at_work import NodeWork
from parallelrun_core.wire.states import URGENT, JobState

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis

log = logger()

_NEWS_EVERY_S: Final = 0.05
_URGENT_ACCOUNT: Final = "\0"
"""What no name of a person begins with."""


@dataclass(frozen=True)
class JobParts:
    """The open parts of a job on one node; `joining.py` puts them together."""

    folder: JobFolder
    python: JobPython
    code: JobCode
    tracking: JobTracking
    stage: JobStage
    plans: PlanMaker
    reports: LeaderReports
    driver: JobDriver
    monitor: ResourceMonitor
    stacks: StackAnswers


class NodeJob:
    """Everything a node does for one job. Used by the agent's one thread only."""

    def __init__(
        self,
        redis: Redis,
        record: JobRecord,
        spec: JobSpec,
        settings: AgentSettings,
        parts: JobParts,
    ) -> None:
        self.folder = parts.folder
        self.job_id = parts.folder.job_id
        self.owner = record.owner
        """The person whose job it is."""
        self._submitted_priority = spec.priority
        self._given_priority = ""
        self._news_at = 0.0  # by hand, as each turn compares it
        self.gpus_of_worker = spec.gpus_of_worker or Fraction(1)
        self.share = Share()
        """Its part of the node, as it was shared last."""
        requested = spec.max_concurrency_per_instance or 0
        self.slots_beyond = max(0, min(requested, settings.most_slots) - settings.slots)
        """Workers that it may have here beyond the slots, as it asks for them and the operator allows it."""
        self._redis = redis
        self._node = settings.node
        self._at_work = AtWorkReports(redis, self.job_id, settings.node)
        self._parts = parts
        self._python = parts.python
        self._code = parts.code
        self._tracking = parts.tracking
        self._stage = parts.stage
        self._reports = parts.reports
        self._driver = parts.driver
        self._view = parts.driver.view
        self.workers: Sequence[Worker] = self._view.workers
        # The machine's own methods, which the agent's loop calls at every turn.
        self.due_at = self._view.turns.due_at
        self.nap_s = self._view.nap_s
        self.lease_left_s = self._view.turns.lease_left_s

    def show_stacks(self, request: StacksRequest) -> None:
        """Begin to answer a request for the stacks of its workers here."""
        self._parts.stacks.answer(request, self._driver.session.processes.running())

    @property
    def disk_is_full(self) -> bool:
        return self._view.membership.disk_is_full

    @property
    def is_over(self) -> bool:
        """There is nothing more to do: the node has left the job, or Redis doesn't know it any more."""
        return self._view.membership.is_over

    # Calls of Redis; all of these raise redis-py's errors, and can be repeated after one

    def turn(self, now: float) -> None:
        """Report what ended, renew the lease, lease what comes next and hand it to the workers: whatever is due."""
        if now >= self._news_at or self._reports.has_news:
            self._news_at = now + _NEWS_EVERY_S
            self._send_news(now)
        turn = self._view.next_turn(now)
        if (turn is None or not turn.want) and self._view.is_awaited:
            self._driver.session.committer.hurry()
        if turn is None:
            return
        if turn.reports or turn.mode == "leave":
            self._send_reports(now)  # a try's cost is known before its outcome is
        failpoints.reach("turn.before")
        answer = self._driver.session.queue.turn(turn.mode, turn.reports, turn.want)
        failpoints.reach("turn.after")
        if answer.refused:
            log.warning("reports_refused", job_id=self.job_id, count=answer.refused)
        with self._driver as machine:
            machine.answered_turn(turn, answer, sent_at=now, now=time.monotonic())

    def _send_news(self, now: float) -> None:
        if not self._code.is_ready and (damage := self._code.take_failure()) is not None:
            self._reports.never_started(damage)
        if not self._stage.is_ready and (missing := self._stage.take_failure()) is not None:
            self._reports.never_started(missing)
        self._send_reports(now)
        if self._python.is_due(now) or self._stage.is_due(now):
            report_preparing(self._redis, self.job_id, self._node)
            self._python.reported(now)
            self._stage.reported(now)
        if self._at_work.is_due(now):
            wall = time.time()
            self._at_work.report(self._view, self.work(now, wall), now, wall)

    def _send_reports(self, now: float) -> None:
        self._reports.spent(self._driver.session.processes.spent_nano())
        if self.disk_is_full or not self._reports.has_news:
            return
        try:
            seal = self._driver.session.seal
        except OSError as error:
            with self._driver as machine:
                machine.disk_failed(str(error), now)
        else:
            self._reports.send(seal)

    def reassert(self) -> None:
        """Redis was away and may have forgotten: report what this session holds, and what was spent here."""
        self._reports.repeat_cost()
        if self._view.turns.joined:
            deliveries = self._view.deliveries.held
            returned = self._driver.session.queue.reassert(deliveries)
            log.info("leases_reasserted", job_id=self.job_id, held=len(deliveries), returned=returned)

    # Workers, time, and ends

    def observed(self, state: JobState | None, ready: int, sessions: int) -> None:
        with self._driver as machine:
            machine.observed(state, ready, sessions)

    @property
    def is_prepared(self) -> bool:
        """Return whether all is here that each worker needs: code, environment, data."""
        return self._code.is_ready and self._python.is_ready and self._stage.is_ready and self._tracking.is_ready

    @property
    def priority(self) -> str:
        """Return the priority that counts: the one that somebody has given the job since, or the submitted one."""
        return self._given_priority or self._submitted_priority

    @property
    def account(self) -> str:
        """Return in whose name it gets slots: its owner's, or for an urgent job its own."""
        return f"{_URGENT_ACCOUNT}{self.job_id}" if self.priority == URGENT else self.owner

    def prioritize(self, priority: str) -> None:
        """Take over the priority that somebody has given the job; empty: the submitted one counts."""
        self._given_priority = priority

    def work(self, now: float, wall: float) -> NodeWork:
        """Return what this node does for the job, for its heartbeat.

        Args:
            now, wall: the same moment by the monotonic clock, and in seconds since the epoch.
        """
        needs = {
            "code": self._code.is_ready,
            "environment": self._python.is_ready,
            "inputs": self._stage.is_ready,
            "tracking": self._tracking.is_ready,
        }
        return work_of(
            self.workers,
            now,
            wall,
            init_limit_s=self._view.pool.init_limit_s,
            preparing=next((name for name, is_ready in needs.items() if not is_ready), ""),
            standing=self.share,
        )

    @property
    def apart_count(self) -> int:
        """Return how many mini-batches wait here for a worker that runs their items apart."""
        return len(self._view.apart)

    def wanted_workers(self, now: float) -> int:
        """Return how many more workers this job could use here: none before all is here that each of them needs."""
        return self._view.wanted_workers(now) if self.is_prepared else 0

    def awaits_template(self, now: float) -> bool:
        """Return whether its next workers, for which there are slots, are better started in a moment: see
        `WorkerTemplates.is_awaited`."""
        return self._driver.session.processes.await_template(now)

    def spawn(self) -> None:
        """Start one more worker."""
        self._driver.session.processes.spawn()

    def check_time(self, now: float) -> None:
        """Enforce the lease, the timeouts and the end of the job, and see whether a full disk has room again."""
        for worker in self._view.overdue(now):
            self._driver.session.processes.receive(worker)
        with self._driver as machine:
            machine.check_time(now)
        session = self._driver.session
        session.processes.replace_hoarders(now)
        session.processes.refresh_logs(now)
        session.check_disk(now)
        if session.staging is not None:
            session.staging.poll()
        if session.uploading is not None:
            session.uploading.poll(now)

    def take_back(self, worker: Worker) -> None:
        """Let a worker end after what it runs: another job gets its slot."""
        log.info("worker_taken_back", job_id=self.job_id, process=worker.process)
        with self._driver as machine:
            if worker.stage == "ready":
                machine.pool.replace(worker)

    @property
    def waiting(self) -> int:
        """Return how many mini-batches are here that no worker was given yet."""
        deliveries = self._view.deliveries
        return max(0, deliveries.unreported - sum(len(worker.in_flight) for worker in self.workers))

    def resident_bytes(self) -> int:
        """The most memory that one of its workers has now; 0: it has none."""
        return max(map(resident_bytes, self._driver.worker_pids().values()), default=0)

    def end_idle_worker(self, now: float) -> bool:
        """End a worker for which there is nothing to do; whether there was one."""
        with self._driver as machine:
            return machine.end_idle_worker(now)

    def drain(self, grace_s: float, now: float) -> None:
        """Finish what runs, return the rest, then leave."""
        with self._driver as machine:
            machine.drain(grace_s, now)

    def close(self) -> None:
        """End all that is left of it here; the last turn has left the job, or Redis doesn't know it any more."""
        self._driver.close()
        self._python.close()
        self._code.close()
        self._parts.monitor.stop(takes_sample=self._parts.plans.has_begun)
        self._parts.stacks.close()
        self._parts.plans.close()
        self._stage.close()
