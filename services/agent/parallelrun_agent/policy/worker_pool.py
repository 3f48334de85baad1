"""The workers of one job on one node: how many, for how long, and when to end one. Pure policy, no I/O."""

from __future__ import annotations

from collections import deque

from parallelrun_agent.policy.commands import Command, DumpStacks, EndWorker, Kill, ReportInitFailure, TakeBack
from parallelrun_agent.policy.outcomes import what_runs
from parallelrun_agent.policy.worker import NEVER, KillReason, Worker
from parallelrun_core.service.pacing import Backoff
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.outcome import Failure

_INIT_FAILURES_PER_WORKER = 3  # after that many, a node stops trying (reference §3.7)
_FIRST_SPAWN_PAUSE_S = 0.1
_LONGEST_SPAWN_PAUSE_S = 2.0
_DUMP_STACKS_S = 0.2
"""How long a worker that is to be killed has for writing its stacks."""
_ASK_AFTER_S = 1.0
"""A worker still in init() after this long is asked for its stacks when the job ends."""


class WorkerPool:
    """The workers of a job on this node: how many more are wanted, and which must end.

    Args:
        commands: where to put what is to be done to a process.
        limit: the most workers that the job may have on this node.
        shutdown_s: how long shutdown() may take.
    """

    def __init__(self, commands: deque[Command], spec: JobSpec, *, limit: int, shutdown_s: float) -> None:
        self.workers: list[Worker] = []
        """The same list for as long as the pool exists."""
        self._commands = commands
        self._limit = limit
        self._load_s = spec.task_overhead_timeout
        self._run_s = spec.run_invocation_timeout
        self._shutdown_s = shutdown_s
        self._what = what_runs(spec)
        self.init_limit_s = 3 * self._run_s + 30  # as the reference has it (§3.7)
        self._init_failed = 0
        self._spawn_pause = Backoff(_FIRST_SPAWN_PAUSE_S, _LONGEST_SPAWN_PAUSE_S)
        self._spawn_after = 0.0

    # Which workers there are

    @property
    def is_busy(self) -> bool:
        """Some worker has something in flight."""
        return any(worker.in_flight for worker in self.workers)

    def available(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.stage == "ready"]

    def is_held_up(self, now: float) -> bool:
        """No worker will be free soon: all available ones have a head that is unexpectedly slow."""
        return all(worker.in_flight.holds_up(now) for worker in self.available())

    def idle(self) -> Worker | None:
        return next((worker for worker in self.available() if not worker.in_flight), None)

    def wanted(self, ready: int, now: float) -> int:
        """Return how many more the job could use here, if `ready` mini-batches wait."""
        if now < self._spawn_after:
            return 0
        hopeless = self._init_failed >= _INIT_FAILURES_PER_WORKER * self._limit
        if hopeless and not any(worker.is_through_init for worker in self.workers):
            return 0
        # Starting or idle: they will take some of it.
        free = sum(not worker.in_flight and not worker.is_to_end for worker in self.workers)
        return min(self._limit - len(self.workers), ready - free)

    def got_ready(self, worker: Worker, now: float = 0.0, init_s: float = NEVER) -> None:
        """Record that a worker is through init(), so others may get through as well."""
        _check_in_init(worker)
        worker.pass_init(now, init_s)
        self._init_failed = 0
        self._spawn_pause.reset()

    def init_failed(self, process: str, failure: Failure, now: float, after_s: float) -> None:
        """A worker didn't get through init(); pauses before the next ones get longer and longer."""
        self._init_failed += failure.category in ("INIT_EXCEPTION", "GPU_OUT_OF_MEMORY")
        self._spawn_after = now + self._spawn_pause.next_s()
        self._commands.append(ReportInitFailure(process, failure, after_s))

    def exited(self, worker: Worker, code: int, now: float) -> None:
        """Its process has ended; when that was in init(), and is not known yet, it is reported."""
        self.workers.remove(worker)
        if worker.stage == "starting":
            failure = Failure("INIT_DIED", f"The worker ended in init(), code {code}.")
        elif worker.kill_reason == "init_timeout" and not worker.is_through_init:
            failure = Failure("INIT_TIMEOUT", self._too_long_in_init)
        else:
            return
        self.init_failed(worker.process, failure, now, now - worker.started)

    # Ways to end one

    def end(self, worker: Worker, now: float) -> None:
        """Let it finish and shut down, within its time."""
        if worker.stage in ("ready", "replaced"):
            worker.end(now + self._shutdown_s)
            self._commands.append(EndWorker(worker))

    def replace(self, worker: Worker) -> None:
        """Leave it only what it runs, after which it is to end."""
        worker.replace()
        self._commands.append(TakeBack(worker))

    def ends_in_init(self, worker: Worker, now: float) -> None:
        """Record that a worker's init() failed: it will exit by itself, within the same time."""
        _check_in_init(worker)
        worker.fail_init(now + self._shutdown_s)

    def kill(self, worker: Worker, reason: KillReason) -> None:
        """End it now, if that was not done yet; the first reason stays."""
        if worker.stage != "killed":
            worker.kill(reason)
            self._commands.append(Kill(worker))

    def kill_writer(self, part_name: str, reason: KillReason) -> None:
        """Kill the worker that writes to this part file: nothing may be added to it any more."""
        for worker in self.workers:
            if part_name and worker.part_name == part_name:
                self.kill(worker, reason)

    def _condemn(self, worker: Worker, reason: KillReason, why: str, now: float) -> None:
        """Kill it a moment after it was asked for its stacks. What it answers until then counts."""
        worker.condemn(reason, now, now + _DUMP_STACKS_S)
        self._commands.append(DumpStacks(worker, why))

    # Time

    def hangs(self, worker: Worker, now: float) -> bool:
        """Return whether a worker has been reading or running its head for too long."""
        in_flight = worker.in_flight
        too_long = in_flight.loading_s(now) > self._load_s or in_flight.in_run_s(now) > self._run_s
        return too_long and worker.stage in ("ready", "replaced")

    def check_time(self, now: float) -> None:
        """End workers that have taken too long; take back what waits for a slow head."""
        for worker in self.workers:
            if worker.stage == "condemned":
                if now >= worker.kill_at:
                    self.kill(worker, worker.kill_reason)
            elif worker.stage == "ending":
                if now >= worker.end_by:
                    why = "shutdown(), or the end of the process after it, took too long."
                    self._condemn(worker, "shutdown_timeout", why, now)
            elif worker.stage == "starting":
                if now - worker.started > self.init_limit_s:
                    self._condemn(worker, "init_timeout", self._too_long_in_init, now)
            elif worker.stage != "killed":
                self._check_head(worker, now)

    @property
    def _too_long_in_init(self) -> str:
        return f"init() took longer than 3 x run_invocation_timeout + 30 s ({self.init_limit_s:g} s)."

    def _check_head(self, worker: Worker, now: float) -> None:
        hangs = self.hangs(worker, now)
        if hangs or worker.in_flight.has_unread(now):
            self._commands.append(TakeBack(worker))
        if hangs and worker.in_flight.loading_s(now):
            self._condemn(worker, "load_timeout", f"Reading the data took longer than {self._load_s:g} s.", now)
        elif hangs:
            self._condemn(worker, "run_timeout", f"{self._what} took longer than {self._run_s:g} s.", now)

    # All of them

    def take_back(self) -> None:
        """Leave each worker only what it runs."""
        self._commands.extend(TakeBack(worker) for worker in self.workers if worker.is_through_init)

    def drain(self) -> None:
        """Leave each worker only what it runs, and kill those in init()."""
        self.take_back()
        for worker in self.workers:
            if not worker.is_through_init:
                self.kill(worker, "drained")

    def kill_all(self, reason: KillReason) -> None:
        """End all of them now."""
        for worker in self.workers:
            self.kill(worker, reason)

    def end_all(self, now: float, *, orderly: bool) -> None:
        """The job has ended: `shutdown()` and exit, or just exit. One that hangs in init() is asked for its stacks."""
        for worker in self.workers:
            # A worker still busy after all is decided runs something that another delivery has decided.
            if orderly and worker.is_through_init and not worker.in_flight:
                self.end(worker, now)
            elif worker.is_through_init or now - worker.started <= _ASK_AFTER_S:
                self.kill(worker, "ended")
            elif worker.stage in ("starting", "ending"):
                self._condemn(worker, "hung_in_init", "The job ended before init() had.", now)


def _check_in_init(worker: Worker) -> None:
    """A second report of how init() ended means that something else, too, writes to the worker's pipe."""
    if worker.is_through_init or worker.stage == "ending":
        raise LookupError("there are two answers of init()")
