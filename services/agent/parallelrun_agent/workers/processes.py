"""The processes of one session's workers: started, read, timed, and ended with all that they leave behind.

This is about processes, not mini-batches: it reports what the workers send to the job machine, which decides.
"""

from __future__ import annotations

import signal
import struct
import time
from collections import Counter
from contextlib import AbstractContextManager
from functools import partial
from typing import Final

from parallelrun_agent.node.memory import OomWatch
from parallelrun_agent.node_context import NodeContext
from parallelrun_agent.policy.job_machine import JobMachine
from parallelrun_agent.policy.worker import Exit, Worker
from parallelrun_agent.workers.answers import (
    parse_answer,
    parse_failure,
    parse_items_failed,
    parse_part,
    parse_waited,
    parse_warnings,
)
from parallelrun_agent.workers.capped_log import TRIM_EVERY_S
from parallelrun_agent.workers.committer import Committer
from parallelrun_agent.workers.leader_reports import LeaderReports
from parallelrun_agent.workers.plans import PlanMaker
from parallelrun_agent.workers.secrets import SecretMissing
from parallelrun_agent.workers.worker_process import NotAFrame, WorkerProcess
from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder.disk_trouble import is_disk_trouble
from parallelrun_core.service.pacing import Every
from parallelrun_core.service.telemetry import logger
from parallelrun_core.wire.outcome import ErrorCategory, Failure
from parallelrun_worker import frames

log = logger()

_ANSWERS: Final = (frames.DONE, frames.FAILED)
_MOST_UNWAITED: Final = 200
"""How many ended children a worker may gather. In a container, all of a node may have some thousand processes."""


class WorkerProcesses:
    """The workers' processes of one session. For the agent's one thread alone.

    Args:
        session: its name, which part files begin with.
        committer: closes the part files of dead workers.
        reports: how init() and shutdown() went goes there.
        events: everything else that workers do and send goes there.
        spent_nano: what the workers of earlier sessions have reported as cost.
    """

    def __init__(
        self,
        session: str,
        plans: PlanMaker,
        node: NodeContext,
        *,
        committer: Committer,
        reports: LeaderReports,
        events: AbstractContextManager[JobMachine],
        spent_nano: int = 0,
    ) -> None:
        self._spent_nano = spent_nano
        self._session = session
        self._plans = plans
        self._loop = node.loop
        self._orphans = node.orphans
        self._templates = node.templates
        self._committer = committer
        self._reports = reports
        self._events = events
        self._processes: dict[str, WorkerProcess] = {}
        self._from_init: dict[str, int] = {}
        """How many ended children a worker had when it was through init(): its replacement begins with as many."""
        self._held: Counter[str] = Counter()
        """How many outcomes of a worker wait for their uploads."""
        self._held_parts: dict[str, int] = {}
        """The part files of workers that have ended, for as long as outcomes of them wait."""
        self._oom = OomWatch()
        self._refreshes_logs = Every(TRIM_EVERY_S)

    def process(self, worker: Worker) -> WorkerProcess:
        return self._processes[worker.process]

    def pids(self) -> dict[str, int]:
        """The process ids by the names of the workers. Safe in any thread."""
        return {name: process.pid for name, process in self._processes.copy().items()}

    def running(self) -> dict[str, WorkerProcess]:
        return self._processes

    def part_fd(self, worker: Worker | None) -> int:
        """The part file that this worker writes to; -1 when there is none, or no such worker any more."""
        process = self._processes.get(worker.process) if worker is not None else None
        if process is None and worker is not None:
            return self._held_parts.get(worker.process, -1)
        return process.part_fd if process is not None else -1

    def spent_nano(self) -> int:
        """Return the cost that scripts have reported here, in billionths of a US dollar; it never becomes less."""
        return self._spent_nano + sum(process.ring.cost_nano() for process in self._processes.values())

    def hold_part(self, process: str) -> None:
        """An outcome of this worker will be committed, perhaps after it has ended."""
        self._held[process] += 1

    def release_part(self, process: str) -> None:
        """Let go of a held part that is with the committer, or not wanted any more."""
        self._held[process] -= 1
        if self._held[process] <= 0:
            del self._held[process]
            if (fd := self._held_parts.pop(process, -1)) >= 0:
                self._committer.close_part(fd)

    # From start to end

    def await_template(self, now: float) -> bool:
        """Return whether a worker is better started in a moment, when there is a template from which it is forked."""
        if self._templates is None:
            return False
        try:
            template = self._plans.template()
        except (SecretMissing, OSError):  # which is reported for a worker
            return False
        return template is not None and self._templates.is_awaited(template, now)

    def spawn(self) -> None:
        """Start one more worker. When it can't be started, try again later."""
        try:
            plan = self._plans.next_plan(self._session)
        except SecretMissing as error:
            log.error("secret_missing", job_id=self._plans.job_id, error=str(error))
            with self._events as machine:
                category: ErrorCategory = "INIT_DIED" if error.is_for_now else "INIT_EXCEPTION"
                machine.init_failed("", Failure(category, str(error)), time.monotonic())
            return
        except OSError as error:
            self._not_started("", error)
            return
        try:
            process = WorkerProcess.start(plan, self._templates.fork if self._templates is not None else None)
        except OSError as error:
            self._plans.clean(plan.process)
            self._not_started(plan.process, error)
            return
        self._processes[process.process] = process
        with self._events as machine:
            worker = machine.worker_started(process.process, process.part_name, time.monotonic())
        self._orphans.worker_started(process.pid)
        self._oom.poll()
        self._loop.add(process.results, partial(self.receive, worker))
        self._loop.add(process.pidfd, partial(self._on_exit, worker))
        started = {"process": worker.process, "pid": process.pid, "is_forked": process.is_forked}
        log.info("worker_started", job_id=plan.config.job_id, **started)

    def _not_started(self, process: str, error: OSError) -> None:
        """A worker can't be started now; it has no name yet if its folders couldn't be made."""
        log.error("worker_not_started", process=process, job_id=self._plans.job_id, error=str(error))
        with self._events as machine:
            if is_disk_trouble(error):
                machine.disk_failed(str(error), time.monotonic())
            else:
                failure = Failure("INIT_DIED", f"The worker can't be started: {error}")
                machine.init_failed(process, failure, time.monotonic())

    def _on_exit(self, worker: Worker) -> None:
        self.receive(worker)  # what it sent before it died counts
        process = self._processes[worker.process]
        unread = process.take_back()
        code = self._reap(process)
        self._orphans.reap()
        log.info("worker_ended", job_id=self._plans.job_id, process=worker.process, exit_code=code)
        oom_killed = code == -signal.SIGKILL and not worker.kill_reason and self._oom.poll()
        with self._events as machine:
            machine.exited(worker, Exit(code, oom_killed, process.peak_bytes), time.monotonic(), unread=unread)

    def _reap(self, process: WorkerProcess) -> int:
        del self._processes[process.process]
        self._from_init.pop(process.process, None)
        if process.is_watched:
            self._loop.remove(process.results)
        self._loop.remove(process.pidfd)
        code = process.reap()
        self._spent_nano += process.ring.cost_nano()
        self._orphans.worker_ended(process.pid)
        process.close()
        self._plans.clean(process.process)
        if process.part_fd >= 0 and self._held[process.process]:
            self._held_parts[process.process] = process.part_fd
        elif process.part_fd >= 0:
            self._committer.close_part(process.part_fd)
        return code

    def kill_all(self) -> None:
        """Kill all workers now, and whatever they have left behind; returns when they are gone."""
        for process in self._processes.values():
            process.kill()  # all of them, before waiting for any
        if self._processes:
            for process in list(self._processes.values()):
                self._reap(process)
            self._orphans.reap()
        for fd in self._held_parts.values():
            self._committer.close_part(fd)
        self._held_parts.clear()

    # What they send

    def receive(self, worker: Worker) -> None:
        """Report to the machine all that this worker has sent so far."""
        process, now, mask = self._processes[worker.process], time.monotonic(), self._plans.mask
        with self._events as machine:
            try:
                for kind, payload in process.receive():
                    if kind in _ANSWERS:
                        machine.answered(worker, parse_answer(kind, payload, mask), now)
                    else:
                        self._on_news(machine, worker, kind, payload, now)
            except (NotAFrame, CorruptLog, LookupError, ValueError, struct.error) as error:
                log.error("protocol_violated", job_id=self._plans.job_id, process=worker.process, error=str(error))
                process.is_trusted = False
                machine.violated_protocol(worker, now)
            if process.is_watched and process.is_closed:  # nothing more can come
                process.is_watched = False
                self._loop.remove(process.results)
            machine.caught_up(worker, now)

    def _on_news(self, machine: JobMachine, worker: Worker, kind: int, payload: bytes, now: float) -> None:
        """Any frame that isn't the answer for a mini-batch."""
        job_id = self._plans.job_id
        if kind == frames.NOT_STORED:
            machine.rows_not_taken(worker, int.from_bytes(payload[: frames.MINI_BATCH.size], "little"), now)
            machine.disk_failed(payload[frames.MINI_BATCH.size :].decode(errors="replace"), now)
        elif kind == frames.LOADED:
            mini_batch, items, load_s = frames.LOAD.unpack(payload)
            worker.in_flight.loaded(mini_batch, items, load_s, now)
        elif kind == frames.ALIVE:
            worker.in_flight.alive(now)
        elif kind == frames.SET_ASIDE:
            worker.in_flight.set_aside(*frames.SET_ASIDE_FILES.unpack(payload))
        elif kind == frames.PART:
            mini_batch, event = parse_part(payload, self._plans.mask)
            worker.in_flight.part(mini_batch, event, worker.process, time.time(), now)
        elif kind == frames.ITEMS_FAILED:
            worker.in_flight.items_failed(*parse_items_failed(payload, self._plans.mask))
        elif kind == frames.WAITED:
            worker.in_flight.waited(*parse_waited(payload))
        elif kind == frames.WARNED:
            worker.in_flight.warned(*parse_warnings(payload, self._plans.mask))
        elif kind == frames.READY:
            self._on_ready(machine, worker, *frames.SECONDS.unpack(payload), now=now)
        elif kind == frames.INIT_FAILED:
            machine.init_failed(worker.process, parse_failure(payload, self._plans.mask, "INIT_EXCEPTION"), now, worker)
        else:  # STOPPED
            raised = parse_failure(payload, self._plans.mask) if payload else None
            self._reports.phase_ended(worker.process, "SHUTDOWN", self._processes[worker.process].ending_s, raised)
            if raised is not None:
                log.warning("shutdown_failed", job_id=job_id, process=worker.process, message=raised.message)

    def _on_ready(self, machine: JobMachine, worker: Worker, seconds: float, *, now: float) -> None:
        process = self.process(worker)
        machine.pool.got_ready(worker, now, seconds)
        self._from_init[worker.process] = self._orphans.unwaited_of(process.pid)
        self._reports.phase_ended(worker.process, "INIT", seconds)
        times = {"start_s": round(worker.start_s, 3), "init_s": round(worker.init_s, 3)}
        log.info("worker_ready", job_id=self._plans.job_id, process=worker.process, **times)

    def replace_hoarders(self, now: float) -> None:
        """End each worker that keeps too many process ids of ended children, after what it runs."""
        unwaited = self._orphans.unwaited(now)
        job_id = self._plans.job_id
        with self._events as machine:
            for worker in machine.pool.available():
                count = unwaited[self.process(worker).pid]
                if count - self._from_init.get(worker.process, 0) > _MOST_UNWAITED:
                    log.warning("worker_replaced", job_id=job_id, process=worker.process, ended_children=count)
                    machine.pool.replace(worker)

    def refresh_logs(self, now: float) -> None:
        """Keep logs short, and those of idle workers up to date; after one was too long, do it again soon."""
        if self._refreshes_logs.is_due(now):
            floods = [process.refresh_logs() for process in self._processes.values()]
            if any(floods):
                self._refreshes_logs.soon()
