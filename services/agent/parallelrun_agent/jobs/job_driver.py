"""Executes what the job machine of a node decides: the processes, files and connections that it is about.

Events reach a machine only in a `with` statement, at whose end all is executed that it has asked for by then. Nobody
has the machine otherwise, so nobody can forget that:

    with driver as machine:
        machine.exited(worker, …)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from isal.isal_zlib import crc32

from parallelrun_agent.jobs.session import AgentSession
from parallelrun_agent.policy.commands import (
    Abandon,
    Command,
    Commit,
    Deliver,
    DropRest,
    DumpStacks,
    EndWorker,
    Kill,
    ReportFailure,
    ReportInitFailure,
    ReportRestLost,
    SetWidth,
    StageFiles,
    TakeBack,
    Unstage,
    UploadOutcome,
    UploadRest,
    WatchDisk,
)
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.job_machine import JobMachine
from parallelrun_agent.policy.job_view import JobView
from parallelrun_agent.policy.worker import Worker
from parallelrun_agent.staging.staging import Staging
from parallelrun_agent.uploading.uploading import Uploading
from parallelrun_agent.workers.error_files import ErrorFiles
from parallelrun_agent.workers.leader_reports import LeaderReports
from parallelrun_agent.workers.payloads import payload_of
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.folder.disk_trouble import is_disk_trouble
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.service.telemetry import logger
from parallelrun_core.wire.message import RetriedItems
from parallelrun_core.wire.outcome import Failure
from parallelrun_worker import frames

log = logger()


class JobDriver:
    """Drives one job on one node, session after session. Used by the agent's one thread only.

    Args:
        open_session: opens a session, whose events go to what it is given, after another one was closed.

    Raises:
        OSError: the first session can't be opened for now.
    """

    def __init__(
        self,
        machine: JobMachine,
        folder: JobFolder,
        errors: ErrorFiles,
        reports: LeaderReports,
        open_session: Callable[[AbstractContextManager[JobMachine], AgentSession | None], AgentSession],
    ) -> None:
        self._machine = machine
        self.view: JobView = machine
        self._job_id = folder.job_id
        self._path = folder.path
        self._parts = folder.parts
        self._errors = errors
        self._reports = reports
        self._open_session = open_session
        self.session = open_session(self, None)
        """The present one."""

    def worker_pids(self) -> dict[str, int]:
        """Return the process ids of the workers, by name."""
        return self.session.processes.pids()

    def close(self) -> None:
        """Close the present session; no other follows."""
        self.session.close()

    def __enter__(self) -> JobMachine:
        return self._machine

    def __exit__(self, *_: object) -> None:
        commands, session = self._machine.commands, self.session
        while commands:
            command = commands.popleft()
            # Each mini-batch brings one of these two; `match` would take several times as long to see which.
            if type(command) is Deliver:
                self._deliver(command.worker, command.assignments)
            elif type(command) is Commit:
                outcome = command.outcome
                if outcome.failure is not None:  # spares all others a call
                    self._errors.add_try(outcome)
                session.committer.add(outcome, session.processes.part_fd(command.worker))
            else:
                self._execute_rare(command)
                session = self.session

    def _execute_rare(self, command: Command) -> None:
        processes = self.session.processes
        match command:
            case StageFiles():
                self._staging.begin(command.assignments)
            case Unstage():
                self._staging.end(command.tokens)
            case ReportFailure(outcome, to_leader):
                self._errors.add_try(outcome)
                if to_leader:
                    self._reports.failed_whole(outcome)
            case UploadOutcome() | UploadRest() | DropRest():
                self._upload(command)
            case TakeBack():
                mini_batches = processes.process(command.worker).take_back()
                self._machine.taken_back(command.worker, mini_batches, time.monotonic())
            case SetWidth() | EndWorker() | DumpStacks() | Kill():
                self._tell(command)
            case ReportInitFailure() | ReportRestLost():
                self._report(command)
            case WatchDisk():
                self.session.disk.failed(command.error, time.monotonic())
            case Abandon():
                log.warning(command.why, job_id=self._job_id, session=self.session.name, held=command.delivery_count)
                self.session.close()
                try:
                    self.session = self._open_session(self, self.session)
                except OSError as error:  # of this job alone: others go on, and the node joins this one again later
                    log.error("session_not_opened", job_id=self._job_id, error=str(error))
                    self._machine.membership.has_left = True

    def _tell(self, command: SetWidth | EndWorker | DumpStacks | Kill) -> None:
        process = self.session.processes.process(command.worker)
        match command:
            case SetWidth():
                process.set_width(command.width)
            case EndWorker():
                process.end()
            case DumpStacks():
                log.warning(command.worker.kill_reason, job_id=self._job_id, process=command.worker.process)
                process.dump_stacks(command.why)
            case Kill():
                process.kill()

    def _upload(self, command: UploadOutcome | UploadRest | DropRest) -> None:
        process = command.worker.process
        match command:
            case UploadOutcome():
                self._uploading.begin(process, command.mini_batch, command.token)
            case UploadRest():
                self._uploading.begin_rest(process)
            case DropRest():
                self._uploading.drop_rest(process)

    def _report(self, command: ReportInitFailure | ReportRestLost) -> None:
        if isinstance(command, ReportInitFailure):
            self._reports.init_failed(command.process, command.failure, command.after_s)
        else:
            failure = Failure("OUTPUT_UNWRITABLE", command.why)
            self._reports.phase_ended(command.process, "SHUTDOWN", 0.0, failure)

    def _deliver(self, worker: Worker, assignments: list[Assignment]) -> None:
        process = self.session.processes.process(worker)
        staging, now = self.session.staging, time.time()
        for assignment in assignments:
            try:
                if staging is None:
                    kind, items, payload = payload_of(assignment.delivery.message, self._path)
                else:
                    kind, items, payload = staging.payload(assignment.delivery.token)
            except (ParallelRunError, OSError, StopIteration) as error:
                self._unreadable(worker, assignment, error)
                continue
            if assignment.isolation is not None:
                retried = assignment.isolation.retried
                other_rows = kept_rows(self._parts, retried) if retried is not None else b""
                kind, payload = frames.APART, assignment.isolation.asked(kind, other_rows) + payload
            assignment.hand_over(items, now, loads=kind != frames.PATHS)
            try:
                process.deliver(assignment.delivery.mini_batch, payload, kind)
            except OSError as error:  # a long one goes by way of a file
                self._undelivered(worker, assignment, error)
        try:
            process.send()
        except OSError as error:
            self._out_of_reach(worker, error)

    @property
    def _staging(self) -> Staging:
        if self.session.staging is None:
            raise RuntimeError("nothing is staged for this job")
        return self.session.staging

    @property
    def _uploading(self) -> Uploading:
        if self.session.uploading is None:
            raise RuntimeError("this job has no outputs in stores")
        return self.session.uploading

    def _unreadable(self, worker: Worker, assignment: Assignment, error: Exception) -> None:
        if isinstance(error, OSError) and is_disk_trouble(error):
            self._undelivered(worker, assignment, error)
        else:
            failure = Failure("INPUT_UNREADABLE", f"The mini-batch message can't be read: {error}")
            self._machine.unreadable(worker, assignment, failure)

    def _undelivered(self, worker: Worker, assignment: Assignment, error: OSError) -> None:
        now = time.monotonic()
        self._machine.undelivered(worker, assignment, now)
        if is_disk_trouble(error):
            self._machine.disk_failed(str(error), now)
        else:
            self._out_of_reach(worker, error)

    def _out_of_reach(self, worker: Worker, error: OSError) -> None:
        log.error("worker_out_of_reach", job_id=self._job_id, process=worker.process, error=str(error))
        self._machine.pool.kill(worker, "distrusted")  # it has closed its folders to us: another one does its work


def kept_rows(parts: Path, items: RetriedItems) -> bytes:
    """Return the rows of the other items; none if they are not what was committed: then all items are run."""
    if not items.length:
        return b""
    try:
        with (parts / items.part).open("rb") as file:
            file.seek(items.offset)
            rows = file.read(items.length)
    except OSError:
        return b""
    return rows if len(rows) == items.length and crc32(rows) == items.crc else b""
