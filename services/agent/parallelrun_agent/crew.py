"""The workers of one job on one node: started, heard, timed, and ended with all that they leave behind.

The crew knows processes, not the queue: what becomes of a mini-batch it tells its `Owner`.
"""

from __future__ import annotations

import signal
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from parallelrun_agent.gpus import GpuPool
from parallelrun_agent.line import InHand
from parallelrun_agent.look_ahead import SLOW_HEAD_S
from parallelrun_agent.memory import OomWatch
from parallelrun_agent.orphans import Orphans
from parallelrun_agent.outcomes import Answer, cause_of_death, parse_answer, parse_failure
from parallelrun_agent.plans import PlanMaker
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.worker_process import NotAFrame, WorkerProcess
from parallelrun_core.disktrouble import is_disk_trouble
from parallelrun_core.errors import CorruptLog
from parallelrun_core.outcome import Failure
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.leader_queue import InitFailure
from parallelrun_core.telemetry import logger
from parallelrun_worker import frames

log = logger()

_INIT_FAILURES_PER_WORKER = 3  # a node stops trying after so many (reference §3.7)
_TRIM_EVERY_S = 0.25
_FIRST_SPAWN_PAUSE_S = 0.05
_LONGEST_SPAWN_PAUSE_S = 2.0
_NOBODYS_FAULT = ("drained", "disk_full", "distrusted")
"""Reasons for ending a worker that are not about what runs in it."""


@dataclass(frozen=True, slots=True)
class Watch:
    """How a job asks the agent's loop to call it when a file descriptor is readable; and what all jobs share."""

    add: Callable[[int, Callable[[], None]], None]
    remove: Callable[[int], None]
    orphans: Orphans = field(default_factory=Orphans)
    gpus: GpuPool = field(default_factory=lambda: GpuPool([]))


class Owner(Protocol):
    """Who has given the crew its mini-batches."""

    def answered(self, entry: InHand, worker: WorkerProcess, answer: Answer, elapsed_s: float) -> None:
        """A worker has answered: a try has ended."""

    def concluded(self, entry: InHand, worker: WorkerProcess, answer: Answer, elapsed_s: float) -> None:
        """A try has ended in another way."""

    def not_begun(self, entries: list[InHand]) -> None:
        """These were not begun: any worker may have them."""

    def give_back(self, entries: list[InHand]) -> None:
        """These can't be run here, and nobody is to be charged for it."""

    def has_room(self, now: float) -> None:
        """Some worker can take more."""

    def disk_failed(self, error: str) -> None:
        """Something of ours could not be written."""

    def part_ended(self, part_fd: int) -> None:
        """Nobody writes to this part file any more: close it, once what is in it is durable."""


class Crew:
    """Used by the agent's one thread only."""

    def __init__(self, owner: Owner, plans: PlanMaker, spec: JobSpec, settings: AgentSettings, watch: Watch) -> None:
        self.workers: list[WorkerProcess] = []
        self.init_failures: list[InitFailure] = []
        """Which the leader has not been told of."""
        self.draining = False
        self._owner = owner
        self._plans = plans
        self._spec = spec
        self._settings = settings
        self._watch = watch
        self._oom = OomWatch()
        self._init_failed = 0
        self._spawn_pause_s = _FIRST_SPAWN_PAUSE_S
        self._spawn_after = 0.0
        self._trim_at = 0.0

    # Who is there

    def able(self) -> list[WorkerProcess]:
        """Those that can be given something."""
        return [worker for worker in self.workers if worker.ready and not worker.ending]

    def wanted(self, ready: int, now: float) -> int:
        """How many more this job could use here, when so many mini-batches are ready."""
        limit = self._spec.max_concurrency_per_instance or self._settings.slots
        if now < self._spawn_after:
            return 0
        if self._init_failed >= _INIT_FAILURES_PER_WORKER * limit and not any(w.ready for w in self.workers):
            return 0
        free = sum(not worker.line for worker in self.workers)  # starting or idle: they will take some of it
        return min(limit - len(self.workers), ready - free)

    # From start to end

    def spawn(self, session: str) -> None:
        """Start one more worker. When it can't be started, try again later."""
        plan = self._plans.next_plan(session)
        try:
            worker = WorkerProcess(plan)
        except OSError as error:
            log.error("worker_not_started", process=plan.process, job_id=plan.job_id, error=str(error))
            if is_disk_trouble(error):
                self._owner.disk_failed(str(error))
            else:
                failure = Failure("INIT_DIED", f"The worker can't be started: {error}")
                self._note_init_failure(plan.process, failure)
            return
        self.workers.append(worker)
        self._watch.orphans.worker_started(worker.pid)
        self._oom.look()
        self._watch.add(worker.results, lambda: self._on_frames(worker))
        self._watch.add(worker.pidfd, lambda: self._on_exit(worker))
        log.info("worker_started", job_id=plan.job_id, process=worker.process, pid=worker.pid)

    def _on_exit(self, worker: WorkerProcess) -> None:
        self._on_frames(worker)  # what it said before it died counts
        died_in_init = not worker.ready and not worker.ending
        exit_code = self._bury(worker)
        self._watch.orphans.end()
        log.info("worker_ended", job_id=self._plans.job_id, process=worker.process, exit_code=exit_code)
        if died_in_init:
            failure = Failure("INIT_DIED", f"The worker ended in init(), code {exit_code}.")
            self._note_init_failure(worker.process, failure)
        head, rest = worker.line.died(running=worker.ready)
        if worker.kill_reason in _NOBODYS_FAULT:
            self._owner.give_back([*([head] if head else []), *rest])
            return
        if head is not None and worker.line.head_since > worker.condemned_at:
            rest.insert(0, head)  # the one that hung has answered yet: this one came after it
            head = None
        self._owner.not_begun(rest)
        if head is not None:
            elapsed_s = time.monotonic() - worker.line.head_since
            failure = cause_of_death(
                exit_code,
                reason=worker.kill_reason,
                timeout_s=self._spec.run_invocation_timeout,
                oom_killed=exit_code == -signal.SIGKILL and not worker.kill_reason and self._oom.look(),
                peak_bytes=worker.peak_bytes,
            )
            self._owner.concluded(head, worker, Answer(run_s=elapsed_s, failure=failure), elapsed_s)
        self._owner.has_room(time.monotonic())

    def _bury(self, worker: WorkerProcess) -> int:
        self.workers.remove(worker)
        if worker.is_heard:
            self._watch.remove(worker.results)
        self._watch.remove(worker.pidfd)
        exit_code = worker.reap()
        self._watch.orphans.worker_ended(worker.pid)
        worker.close()
        self._plans.clean(worker.process)
        if worker.part_fd >= 0:
            self._owner.part_ended(worker.part_fd)
        return exit_code

    def _note_init_failure(self, process: str, failure: Failure) -> None:
        self._init_failed += failure.category == "INIT_EXCEPTION"
        self._spawn_pause_s = min(_LONGEST_SPAWN_PAUSE_S, 2 * self._spawn_pause_s)
        self._spawn_after = time.monotonic() + self._spawn_pause_s
        self.init_failures.append(InitFailure(self._settings.node, process, failure))
        self._plans.note_init_failure(process, failure)

    # What they say

    def _on_frames(self, worker: WorkerProcess) -> None:
        now = time.monotonic()
        try:
            for kind, payload in worker.hear():
                self._on_frame(worker, kind, payload, now)
        except (NotAFrame, CorruptLog, LookupError, ValueError, struct.error) as error:
            log.error("worker_confused", job_id=self._plans.job_id, process=worker.process, error=str(error))
            worker.is_trusted = False
            worker.kill("confused")
        if worker.is_heard and worker.said_all:  # it has closed its end: there is nothing to wait for any more
            worker.is_heard = False
            self._watch.remove(worker.results)
        worker.flush()
        self._owner.has_room(now)
        if self.draining and not worker.line:
            worker.end(self._settings.shutdown_seconds)

    def _on_frame(self, worker: WorkerProcess, kind: int, payload: bytes, now: float) -> None:
        job_id = self._plans.job_id
        if kind in (frames.DONE, frames.FAILED):
            answer = parse_answer(kind, payload)
            elapsed_s = now - worker.line.head_since
            entry = worker.line.answered(frames.RESULT.unpack_from(payload)[0], now)
            self._owner.answered(entry, worker, answer, elapsed_s)
        elif kind == frames.NOT_KEPT:
            entry = worker.line.answered(int.from_bytes(payload[: frames.MINI_BATCH.size], "little"), now)
            self._owner.give_back([entry])
            self._owner.disk_failed(payload[frames.MINI_BATCH.size :].decode(errors="replace"))
        elif kind == frames.LOADED:
            worker.line.loaded(*frames.LOAD.unpack(payload))
        elif kind == frames.READY:
            worker.ready = True
            self._init_failed, self._spawn_pause_s = 0, _FIRST_SPAWN_PAUSE_S
            log.info("worker_ready", job_id=job_id, process=worker.process, init_s=round(now - worker.started, 3))
        elif kind == frames.INIT_FAILED:
            worker.ending = True
            self._note_init_failure(worker.process, parse_failure(payload, "INIT_EXCEPTION"))
        elif payload:  # STOPPED, and shutdown() raised
            raised = parse_failure(payload)
            log.warning("shutdown_failed", job_id=job_id, process=worker.process, message=raised.message)
            self._plans.note_shutdown_failure(worker.process, raised)

    # Time

    def check_time(self, now: float) -> bool:
        """End who has run for too long, and keep logs short; whether something was taken back from a line."""
        taken = False
        trim, self._trim_at = (True, now + _TRIM_EVERY_S) if now >= self._trim_at else (False, self._trim_at)
        for worker in self.workers:
            if trim and worker.trim_logs():
                self._trim_at = now  # it floods: look again in the next round
            if now >= worker.kill_at:
                self._end_in_time(worker, now)
            elif worker.ready and not worker.kill_reason:
                taken |= self._check_head(worker, now)
        return taken

    def _end_in_time(self, worker: WorkerProcess, now: float) -> None:
        if worker.kill_reason:  # it has had its time for telling its stacks
            worker.kill_at = float("inf")
            worker.kill()
        else:
            log.warning("shutdown_timeout", job_id=self._plans.job_id, process=worker.process)
            worker.kill_with_stacks("ended", "shutdown() took too long.", now)

    def _check_head(self, worker: WorkerProcess, now: float) -> bool:
        running_s = worker.line.running_s(now)
        limit_s = self._spec.run_invocation_timeout
        if running_s > limit_s:
            self._on_frames(worker)  # this agent may have been the slow one
        hangs = worker.line.running_s(now) > limit_s and not worker.kill_reason
        waiting = len(worker.line) > 1
        if hangs or (running_s > SLOW_HEAD_S and waiting):
            self._owner.not_begun(worker.line.take_back(worker.take_back()))
        if hangs:
            log.warning("run_timeout", job_id=self._plans.job_id, process=worker.process)
            worker.kill_with_stacks("timeout", f"run() took longer than {limit_s:g} s.", now)
        return waiting

    # Ends

    def drain(self) -> None:
        """Everybody finishes what runs and ends; what is not begun goes back."""
        self.draining = True
        for worker in self.workers:
            self._owner.give_back(worker.line.take_back(worker.take_back()))
            if not worker.ready:
                worker.kill("drained")
            elif not worker.line:
                worker.end(self._settings.shutdown_seconds)

    def end(self, *, orderly: bool, now: float) -> None:
        """The job has ended: `shutdown()` and out, or just out. Who hangs in init() is asked where."""
        for worker in self.workers:
            # Who is still busy when all is decided runs what a second delivery has decided.
            if orderly and worker.ready and not worker.line:
                worker.end(self._settings.shutdown_seconds)
            elif not worker.ready and now - worker.started > 1.0:
                worker.kill_with_stacks("ended", "The job ended before init() had.", now)
            else:
                worker.kill("ended")

    def take_back_all(self) -> None:
        """Leave everybody with what runs, and nothing behind it."""
        for worker in self.workers:
            self._owner.give_back(worker.line.take_back(worker.take_back()))

    def end_writer(self, part_fd: int, reason: str) -> None:
        """Nobody must add to this part file any more. What its worker has in hand goes back uncharged."""
        for worker in self.workers:
            if worker.part_fd == part_fd:
                worker.kill(reason)

    def kill_all(self, reason: str) -> None:
        """Kill everybody now, and whatever they have left behind; returns when they are gone."""
        for worker in self.workers:
            worker.kill(reason)  # all of them, before waiting for any
        if self.workers:
            for worker in list(self.workers):
                self._bury(worker)
            self._watch.orphans.end()
