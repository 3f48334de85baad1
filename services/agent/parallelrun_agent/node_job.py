"""One job, as one node works for it: executes what the job machine decides, and reports to it what came of it.

Decisions are in `policy`; here are the connection, the files and the processes that they are about.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from parallelrun_agent.environments.job_python import JobPython
from parallelrun_agent.node.monitor import ResourceMonitor
from parallelrun_agent.node_context import NodeContext
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
from parallelrun_agent.session import Session
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.workers.error_files import ErrorFiles
from parallelrun_agent.workers.payloads import payload_of
from parallelrun_agent.workers.plans import PlanMaker
from parallelrun_agent.workers.processes import WorkerProcesses
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.folder.disk_trouble import is_disk_trouble
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.layout import Logs
from parallelrun_core.masking import Mask
from parallelrun_core.outcome import Failure
from parallelrun_core.phases import InitFailure, Phase, PhaseName
from parallelrun_core.service import failpoints
from parallelrun_core.service.telemetry import logger
from parallelrun_core.store.outcome_stream import report_init_failure, report_phases, report_preparing
from parallelrun_worker import frames

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis

log = logger()


class NodeJob:
    """Everything a node does for one job. Used by the agent's one thread only.

    Raises:
        NotFound, NewerSchema, CorruptLog: the job folder is not there, or can't be read by this release.
        OSError: it can't be read for now, or the node can't do what the job needs.
    """

    def __init__(self, redis: Redis, folder: JobFolder, settings: AgentSettings, node: NodeContext) -> None:
        self.folder = folder
        self._path = folder.path
        self.job_id = folder.job_id
        record = folder.record()
        spec = record.job_spec()
        self._redis = redis
        self._settings = settings
        self._node = node
        self._init_failures: list[InitFailure] = []  # not reported to the leader yet
        self._phases: list[Phase] = []  # the same
        self._generation = folder.generation()
        self._python = JobPython(
            spec.environment,
            cache=settings.cache_folder,
            kept=settings.environments_kept,
            log_file=Logs(folder.logs).of_node(settings.node) / "environment.txt",
            loop=node.loop,
            orphans=node.orphans,
            changed=self._on_python,
        )
        self._plans = PlanMaker(folder, record, spec, settings, node.gpus, python=self._python)
        self._errors = ErrorFiles(
            folder.logs, settings.node, Mask({"environment_variables": spec.environment_variables})
        )
        self._machine = JobMachine(
            spec,
            OutcomeBuilder(settings.node, generation=self._generation, run_max_try=spec.run_max_try),
            limit=node.gpus.workers(spec.max_concurrency_per_instance, settings.slots),
            lease_s=settings.lease_seconds,
            shutdown_s=settings.shutdown_seconds,
        )
        self._processes = WorkerProcesses(
            self._machine, self._plans, node.loop, node.orphans,
            execute=self._execute, part_ended=self._part_ended,
            phase_ended=self._phase_ended, disk_failed=self._disk_failed,
        )  # fmt: skip
        self._monitor = ResourceMonitor(
            Logs(folder.logs).perf(settings.node), spec.resource_monitor_interval, self._processes.pids
        )
        # The machine's own methods, which the agent's loop calls at every turn.
        self.due_at = self._machine.due_at
        self.nap_s = self._machine.nap_s
        self.lease_left_s = self._machine.lease_left_s
        self.observed = self._machine.observed
        try:
            self._session = self._new_session()
        except OSError:
            self._monitor.stop()
            self._python.close()
            raise

    def _new_session(self) -> Session:
        return Session(
            self._redis, self.folder, self._settings, self._node.loop, self._machine,
            generation=self._generation, execute=self._execute,
        )  # fmt: skip

    def _close_session(self) -> None:
        self._processes.kill_all()
        self._session.close()

    @property
    def workers(self) -> Sequence[Worker]:
        return self._machine.workers

    @property
    def disk_is_full(self) -> bool:
        return self._machine.disk_is_full

    @property
    def is_over(self) -> bool:
        """There is nothing more to do: the node has left the job, or Redis doesn't know it any more."""
        return self._machine.left or self._machine.state is None

    # Calls of Redis; all of these raise redis-py's errors, and can be repeated after one

    def turn(self, now: float) -> None:
        """Report what ended, renew the lease, lease what comes next and hand it to the workers: whatever is due."""
        while self._init_failures:
            report_init_failure(self._redis, self.job_id, self._init_failures[0])
            self._init_failures.pop(0)
        if self._phases:
            report_phases(self._redis, self.job_id, self._phases)
            self._phases = []
        if self._python.is_due(now):
            report_preparing(self._redis, self.job_id, self._settings.node)
            self._python.reported(now)
        turn = self._machine.next_turn(now)
        if (turn is None or not turn.want) and self._machine.is_at_rest:
            self._session.committer.hurry()
        if turn is None:
            return
        failpoints.reach("turn.before")
        answer = self._session.queue.turn(turn.mode, turn.reports, turn.want)
        failpoints.reach("turn.after")
        if answer.refused:
            log.warning("reports_refused", job_id=self.job_id, count=answer.refused)
        self._machine.answered_turn(turn, answer, sent_at=now, now=time.monotonic())
        self._execute()

    def reassert(self) -> None:
        """Redis was away and may have forgotten: report what this session holds."""
        if self._machine.joined:
            held = self._machine.held
            returned = self._session.queue.reassert(held)
            log.info("leases_reasserted", job_id=self.job_id, held=len(held), returned=returned)

    # What the machine asks for

    def _execute(self) -> None:
        commands = self._machine.commands
        while commands:
            command = commands.popleft()
            # Each mini-batch brings one of these two; `match` would take several times as long to see which.
            if type(command) is Deliver:
                self._deliver(command.worker, command.assignments)
            elif type(command) is Commit:
                self._errors.add_try(command.outcome)
                self._session.committer.add(command.outcome, self._processes.part_fd(command.worker))
            else:
                self._execute_rare(command)

    def _execute_rare(self, command: Command) -> None:
        match command:
            case TakeBack():
                taken = self._processes.process(command.worker).take_back()
                self._machine.taken_back(command.worker, taken, time.monotonic())
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
                log.warning(command.why, job_id=self.job_id, session=self._session.name, held=command.held)
                self._close_session()
                self._session = self._new_session()

    def _deliver(self, worker: Worker, assignments: list[Assignment]) -> None:
        process = self._processes.process(worker)
        handed_over = time.time()
        for assignment in assignments:
            try:
                kind, assignment.items, payload = payload_of(assignment.delivery.message, self._path)
            except (ParallelRunError, OSError, StopIteration) as error:
                self._unreadable(worker, assignment, error)
                continue
            assignment.handed_over = handed_over
            assignment.loads = kind == frames.DESCRIBED
            try:
                process.deliver(assignment.delivery.mini_batch, payload, kind)
            except OSError as error:  # a long one goes by way of a file
                self._undelivered(worker, assignment, error)
        try:
            process.send()
        except OSError as error:
            self._out_of_reach(worker, error)

    def _unreadable(self, worker: Worker, assignment: Assignment, error: Exception) -> None:
        if isinstance(error, OSError) and is_disk_trouble(error):
            self._undelivered(worker, assignment, error)
        else:
            failure = Failure("INPUT_UNREADABLE", f"The mini-batch message can't be read: {error}")
            self._machine.unreadable(worker, assignment, failure)

    def _undelivered(self, worker: Worker, assignment: Assignment, error: OSError) -> None:
        self._machine.undelivered(worker, assignment, time.monotonic())
        if is_disk_trouble(error):
            self._disk_failed(str(error))
        else:
            self._out_of_reach(worker, error)

    def _out_of_reach(self, worker: Worker, error: OSError) -> None:
        log.error("worker_out_of_reach", job_id=self.job_id, process=worker.process, error=str(error))
        self._machine.out_of_reach(worker)

    # What came of it

    def _part_ended(self, part_fd: int) -> None:
        self._session.committer.close_part(part_fd)

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
        self._session.disk_failed(error)

    def wanted_workers(self, now: float) -> int:
        """How many more workers this job could use on this node: none while their Python is being built."""
        return self._machine.wanted_workers(now) if self._python.is_ready else 0

    def _on_python(self) -> None:
        if self._python.failure is not None:
            self._init_failures.append(InitFailure(self._settings.node, "", self._python.failure))

    def spawn(self) -> None:
        """Start one more worker."""
        self._processes.spawn(self._session.name)

    def check_time(self, now: float) -> None:
        """Enforce the lease, the timeouts and the end of the job, and see whether a full disk has room again."""
        for worker in self._machine.overdue(now):
            self._processes.receive(worker)
        self._machine.check_time(now)
        self._execute()
        self._processes.replace_hoarders(now)
        self._processes.look_after_logs(now)
        self._session.check_disk(now)

    # Ends

    def end_idle_worker(self, now: float) -> bool:
        """End a worker for which there is nothing to do; whether there was one."""
        found = self._machine.end_idle_worker(now)
        self._execute()
        return found

    def drain(self, grace_s: float, now: float) -> None:
        """Finish what runs, return the rest, then leave."""
        self._machine.drain(grace_s, now)
        self._execute()

    def close(self) -> None:
        """End all that is left of it here; the last turn has left the job, or Redis doesn't know it any more."""
        self._close_session()
        self._python.close()
        self._monitor.stop()
        self._plans.close()
