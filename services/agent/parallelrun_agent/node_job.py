"""One job, as one node works for it: does what the job's machine decides, and tells it what came of it.

Decisions are in `policy`; here are the connection, the files and the processes that they are about.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from parallelrun_agent.committer import Committer
from parallelrun_agent.environments.job_python import JobPython
from parallelrun_agent.node.disk import DiskWatch
from parallelrun_agent.node.monitor import ResourceMonitor
from parallelrun_agent.policy.commands import (
    Abandon,
    Command,
    Commit,
    Deliver,
    DumpStacks,
    End,
    Kill,
    ReportInitFailure,
    TakeBack,
)
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.job_machine import JobMachine
from parallelrun_agent.policy.outcomes import OutcomeBuilder
from parallelrun_agent.policy.worker import Worker
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.workers.error_files import ErrorFiles
from parallelrun_agent.workers.packets import packet_of
from parallelrun_agent.workers.plans import PlanMaker
from parallelrun_agent.workers.processes import WorkerProcesses
from parallelrun_agent.workers.watch import Watch
from parallelrun_core import failpoints, message
from parallelrun_core.disk_trouble import is_disk_trouble
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.ids import new_session
from parallelrun_core.job_folder import JobFolder
from parallelrun_core.manifest import resolve
from parallelrun_core.masking import Mask
from parallelrun_core.outcome import Failure
from parallelrun_core.store.agent_queue import AgentQueue
from parallelrun_core.store.outcome_stream import (
    InitFailure,
    Phase,
    PhaseName,
    report_init_failure,
    report_phases,
    report_preparing,
)
from parallelrun_core.telemetry import logger
from parallelrun_worker import frames

if TYPE_CHECKING:
    from redis import Redis

log = logger()


class NodeJob:
    """Everything a node does for one job. Used by the agent's one thread only.

    Raises:
        NotFound, NewerSchema, CorruptLog: the job folder is not there, or can't be read by this release.
        OSError: it can't be read for now, or the node can't do what the job needs.
    """

    def __init__(self, redis: Redis, folder: JobFolder, settings: AgentSettings, watch: Watch) -> None:
        self.folder = folder
        self._path = folder.path
        self.job_id = folder.job_id
        record = folder.record()
        spec = record.job_spec()
        self._redis = redis
        self._settings = settings
        self._watch = watch
        self._init_failures: list[InitFailure] = []  # of which the leader has not been told
        self._phases: list[Phase] = []  # the same
        self._generation = folder.generation()
        self._python = JobPython(
            spec.environment,
            cache=settings.cache_folder,
            kept=settings.environments_kept,
            log_file=folder.logs / "sys" / "node" / settings.node / "environment.txt",
            watch=watch,
            changed=self._on_python,
        )
        self._plans = PlanMaker(folder, record, spec, settings, watch.gpus, python=self._python)
        self._errors = ErrorFiles(
            folder.logs, settings.node, Mask({"environment_variables": spec.environment_variables})
        )
        self.machine = JobMachine(
            spec,
            OutcomeBuilder(settings.node, generation=self._generation, run_max_try=spec.run_max_try),
            limit=watch.gpus.workers(spec.max_concurrency_per_instance, settings.slots),
            lease_s=settings.lease_seconds,
            shutdown_s=settings.shutdown_seconds,
        )
        self._processes = WorkerProcesses(
            self.machine, self._plans, watch,
            execute=self._execute, part_ended=self._part_ended,
            phase_ended=self._phase_ended, disk_failed=self._disk_failed,
        )  # fmt: skip
        self._monitor = ResourceMonitor(
            folder.logs / "sys" / "perf" / settings.node, spec.resource_monitor_interval, self._processes.pids
        )
        try:
            self._open_session()
        except OSError:
            self._monitor.stop()
            self._python.close()
            raise

    @property
    def workers(self) -> list[Worker]:
        return self.machine.pool.workers

    @property
    def is_over(self) -> bool:
        """There is nothing more to do: the node has left the job, or what it had joined is there no more."""
        return self.machine.left or self.machine.state is None

    # The session: a fresh one for each time that this node joins the job

    def _open_session(self) -> None:
        self.session = new_session(self._settings.node)
        self._queue = AgentQueue(
            self._redis,
            self.job_id,
            session=self.session,
            node=self._settings.node,
            lease_ms=self._settings.lease_ms,
            generation=self._generation,
        )
        self._disk = DiskWatch(self.folder.parts, self.session, job_id=self.job_id)
        wake, self._wake_end = os.pipe()
        os.set_blocking(wake, False)
        self._wake = wake
        self._watch.add(wake, self._on_durable)
        self._committer = Committer(self.folder.journals / self.session, sync=self._settings.sync, wake=self._wake_end)

    def _close_session(self) -> None:
        self._processes.kill_all()
        self._committer.stop()
        self._watch.remove(self._wake)
        os.close(self._wake)
        os.close(self._wake_end)

    # Dealings with Redis; all of these raise redis-py's errors, and can be repeated after one

    def turn(self, now: float) -> None:
        """Report what ended, renew the lease, lease what comes next and hand it to the workers: what of it is due."""
        while self._init_failures:
            report_init_failure(self._redis, self.job_id, self._init_failures[0])
            self._init_failures.pop(0)
        if self._phases:
            report_phases(self._redis, self.job_id, self._phases)
            self._phases = []
        if self._python.is_due(now):
            report_preparing(self._redis, self.job_id, self._settings.node)
            self._python.told(now)
        turn = self.machine.next_turn(now)
        if (turn is None or not turn.want) and self.machine.is_at_rest:
            self._committer.hurry()
        if turn is None:
            return
        failpoints.reach("turn.before")
        answer = self._queue.turn(turn.mode, turn.reports, turn.want)
        failpoints.reach("turn.after")
        if answer.refused:
            log.warning("reports_refused", job_id=self.job_id, count=answer.refused)
        self.machine.answered_turn(turn, answer, sent_at=now, now=time.monotonic())
        self._execute()

    def reassert(self) -> None:
        """Redis was away and may have forgotten: say what this session holds."""
        if self.machine.joined:
            held = self.machine.deliveries.held
            returned = self._queue.reassert(held)
            log.info("leases_reasserted", job_id=self.job_id, held=len(held), returned=returned)

    # What the machine asks for

    def _execute(self) -> None:
        commands = self.machine.commands
        while commands:
            command = commands.popleft()
            # Each mini-batch brings one of these two; `match` would take several times as long to see which.
            if type(command) is Deliver:
                self._deliver(command.worker, command.assignment)
            elif type(command) is Commit:
                self._errors.add_try(command.outcome)
                self._committer.add(command.outcome, self._processes.part_fd(command.worker))
            else:
                self._do(command)

    def _do(self, command: Command) -> None:
        match command:
            case TakeBack():
                taken = self._processes.process(command.worker).take_back()
                self.machine.taken_back(command.worker, taken, time.monotonic())
            case End():
                self._processes.process(command.worker).end()
            case DumpStacks():
                log.warning(command.worker.kill_reason, job_id=self.job_id, process=command.worker.process)
                self._processes.process(command.worker).dump_stacks(command.why)
            case Kill():
                self._processes.process(command.worker).kill()
            case ReportInitFailure():
                self._init_failed(command.process, command.failure)
                self._errors.add_init(command.process, command.failure)
            case Abandon():
                log.warning(command.why, job_id=self.job_id, session=self.session, held=command.held)
                self._close_session()
                self._open_session()

    def _deliver(self, worker: Worker, assignment: Assignment) -> None:
        try:
            found = message.decode(assignment.delivery.message)
            if found.kind == message.REFERENCE:
                found = resolve(self._path, found)
            kind, payload = packet_of(found)
        except (ParallelRunError, OSError, StopIteration) as error:
            if isinstance(error, OSError) and is_disk_trouble(error):
                self._undelivered(worker, assignment, error)
            else:
                failure = Failure("INPUT_UNREADABLE", f"The mini-batch message can't be read: {error}")
                self.machine.unreadable(worker, assignment, failure)
            return
        assignment.items = found.items
        assignment.handed_over = time.time()
        assignment.loads = kind == frames.DESCRIBED
        try:
            self._processes.process(worker).deliver(assignment.delivery.mini_batch, payload, kind)
        except OSError as error:  # a long one goes by way of a file
            self._undelivered(worker, assignment, error)

    def _undelivered(self, worker: Worker, assignment: Assignment, error: OSError) -> None:
        self.machine.undelivered(worker, assignment, time.monotonic())
        if is_disk_trouble(error):
            self._disk_failed(str(error))
        else:
            log.error("worker_out_of_reach", job_id=self.job_id, process=worker.process, error=str(error))
            self.machine.out_of_reach(worker)

    # What came of it

    def _on_durable(self) -> None:
        try:
            os.read(self._wake, 1 << 12)
        except BlockingIOError:
            return
        now, committer = time.monotonic(), self._committer
        if committer.durable:
            self._disk.kept()
        while committer.durable:
            candidate = committer.durable.popleft()
            self.machine.kept(candidate.outcome, candidate.encoded, now)
        while committer.rows_missing:
            self.machine.rows_missing(committer.rows_missing.popleft().outcome)
        while committer.failed:
            candidate, error, part_is_lost = committer.failed.popleft()
            self.machine.not_kept(candidate.outcome, now, part_is_lost=part_is_lost)
            self._disk_failed(error)
        self._execute()

    def _part_ended(self, part_fd: int) -> None:
        self._committer.close_part(part_fd)

    def _phase_ended(self, process: str, name: PhaseName, seconds: float, failure: Failure | None) -> None:
        self._phases.append(Phase(self._settings.node, process, name, time.time() - seconds, seconds, failure))
        if failure is not None:
            self._errors.add_shutdown(process, failure)

    def _init_failed(self, process: str, failure: Failure) -> None:
        age_s = self._processes.age_s(process)
        self._init_failures.append(
            InitFailure(self._settings.node, process, failure, started=time.time() - age_s, seconds=age_s)
        )

    def _disk_failed(self, error: str) -> None:
        now = time.monotonic()
        self._disk.failed(error, now)
        self.machine.disk_failed(now)

    def wanted_workers(self, now: float) -> int:
        """How many more workers this job could use on this node: none while their Python is being made."""
        return self.machine.wanted_workers(now) if self._python.is_ready else 0

    def _on_python(self) -> None:
        if self._python.failure is not None:
            self._init_failures.append(InitFailure(self._settings.node, "", self._python.failure))

    def spawn(self) -> None:
        """Start one more worker."""
        self._processes.spawn(self.session)

    def check_time(self, now: float) -> None:
        """Enforce the lease, the run timeout and the end of the job, and look whether a full disk has room again."""
        for worker in self.machine.overdue(now):
            self._processes.receive(worker)
        self.machine.check_time(now)
        self._execute()
        self._processes.replace_hoarders(now)
        self._processes.trim_logs(now)
        self._disk.look(now)
        if self.machine.disk_is_full and not self._disk.is_full:
            self.machine.disk_has_room()

    # Ends

    def end_idle_worker(self, now: float) -> bool:
        """End a worker for which there is nothing to do; whether there was one."""
        found = self.machine.end_idle_worker(now)
        self._execute()
        return found

    def drain(self, grace_s: float, now: float) -> None:
        """Finish what runs, return the rest, then leave."""
        self.machine.drain(grace_s, now)
        self._execute()

    def close(self) -> None:
        """Forget the job; the last turn has left it, or Redis has."""
        self._close_session()
        self._python.close()
        self._monitor.stop()
        self._plans.close()
