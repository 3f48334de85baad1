"""One job, as one node works for it: its workers, what they have in hand, and its dealings with the queue.

The flow of a mini-batch: leased by `turn` → backlog → a worker's line → answered → committer → reports → `turn`.
Whatever is between the first and the last of these is in `_held`, by token.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parallelrun_agent.committer import Committer
from parallelrun_agent.line import InHand
from parallelrun_agent.look_ahead import SLOW_HEAD_S, LookAhead
from parallelrun_agent.outcomes import Answer, Recorder, cause_of_death, parse_answer
from parallelrun_agent.plans import PlanMaker
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.trust import Trust
from parallelrun_agent.worker_process import WorkerProcess
from parallelrun_core import failpoints, message
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.ids import new_session
from parallelrun_core.jobfolder import JobFolder
from parallelrun_core.manifest import resolve
from parallelrun_core.outcome import Failure
from parallelrun_core.states import JobState
from parallelrun_core.store.agent_queue import AgentQueue, Delivery, Mode, Reports
from parallelrun_core.store.leader_queue import InitFailure, report_init_failure
from parallelrun_core.telemetry import logger
from parallelrun_worker import frames

if TYPE_CHECKING:
    from redis import Redis

log = logger()

_INIT_FAILURES_PER_WORKER = 3  # a node stops trying after so many (reference §3.7)
_ORDERLY_END_S = 30.0
_TURNS_PER_LEASE = 4
_REPORT_WITHIN_S = 0.005


@dataclass(frozen=True, slots=True)
class Watch:
    """How a job asks the agent's loop to call it when a file descriptor is readable."""

    add: Callable[[int, Callable[[], None]], None]
    remove: Callable[[int], None]


class NodeJob:
    """Everything a node does for one job. Used by the agent's one thread only."""

    def __init__(self, redis: Redis, folder: JobFolder, settings: AgentSettings, watch: Watch) -> None:
        self.folder = folder
        self.job_id = folder.job_id
        self.workers: list[WorkerProcess] = []
        self.ready = 0
        """Mini-batches that wait on Redis, as far as this node knows."""
        self.state: JobState | None = JobState.PROCESSING
        self.left = False
        record = folder.record()
        self._spec = record.job_spec()
        self._redis = redis
        self._settings = settings
        self._watch = watch
        self._plans = PlanMaker(folder, record, self._spec, settings)
        self._look_ahead = LookAhead(enabled=self._spec.look_ahead)
        self._recorder = Recorder(settings.node, generation=0, run_max_try=self._spec.run_max_try)
        self._init_failures: list[InitFailure] = []
        self._init_failed = 0
        self._spawn_after = 0.0
        self._draining = False
        self._end_by = float("inf")
        self._open_session()

    # The session: a fresh one for each time that this node joins the job

    def _open_session(self) -> None:
        self.session = new_session(self._settings.node)
        self._queue = AgentQueue(
            self._redis, self.job_id, session=self.session, node=self._settings.node, lease_ms=self._settings.lease_ms
        )
        self._trust = Trust(self._settings.lease_seconds)
        self._joined = False
        self._turn_by = 0.0
        self._held: dict[str, Delivery] = {}
        self._backlog: deque[InHand] = deque()
        self._reports = Reports()
        self._reports_since = 0.0
        wake, self._wake_end = os.pipe()
        os.set_blocking(wake, False)
        self._wake = wake
        self._watch.add(wake, self._on_durable)
        self._committer = Committer(self.folder.journals / self.session, sync=self._settings.sync, wake=self._wake_end)

    def _close_session(self) -> None:
        self._committer.stop()
        self._watch.remove(self._wake)
        os.close(self._wake)
        os.close(self._wake_end)

    def abandon(self, action: str) -> None:
        """The lease is gone, or may be: end every worker and forget what they did; then join anew."""
        log.warning(action, job_id=self.job_id, session=self.session, held=len(self._held))
        for worker in list(self.workers):
            worker.kill("abandoned")
            self._bury(worker)
        self._close_session()
        self._open_session()

    # Dealings with Redis; all of these raise redis-py's errors, and can be repeated after one

    def turn_due(self, now: float) -> bool:
        """Whether there is something to say, to ask for, or a lease to renew."""
        return (
            now >= self.report_by
            or now >= self._turn_by
            or self._wants() > 0
            or bool(self._init_failures)
            or self._is_done()
        )

    @property
    def report_by(self) -> float:
        """When what there is to report must be reported: soon, so that the turn which leases can carry it, too."""
        if not self._reports:
            return float("inf")
        return self._reports_since + (_REPORT_WITHIN_S if any(worker.line for worker in self.workers) else 0.0)

    def turn(self, now: float) -> None:
        """Report what ended, renew the lease, lease what comes next and hand it to the workers."""
        while self._init_failures:
            report_init_failure(self._redis, self.job_id, self._init_failures[0])
            self._init_failures.pop(0)
        fenced = failpoints.enabled("commit.fence")
        mode: Mode = "stay" if self._joined and fenced else "join"
        if self._is_done():
            mode = "leave"
            if not self._joined:
                self.left = True
                return
        sending, rest = self._reports.split()
        failpoints.reach("turn.before")
        answer = self._queue.turn(mode, sending, 0 if mode == "leave" else self._wants())
        failpoints.reach("turn.after")
        if answer.lost:
            self.state = answer.state
            self.abandon("session_lost")
            return
        self._joined = True
        self._reports = rest
        for token in sending.tokens():
            self._held.pop(token, None)
        if answer.refused:
            log.warning("reports_refused", job_id=self.job_id, count=answer.refused)
        self._trust.renewed(now)
        self._turn_by = now + self._settings.lease_seconds / _TURNS_PER_LEASE
        self.state, self.ready = answer.state, answer.ready
        self.left = mode == "leave"
        for delivery in answer.deliveries:
            self._receive(delivery)
        self._feed(now)
        if self.state is not JobState.PROCESSING:
            self._end_workers(now)

    def look_again(self) -> None:
        """Take the next turn at once, to see whether the job has ended."""
        self._turn_by = 0.0

    def reassert(self) -> None:
        """Redis was away and may have forgotten: say what this session holds."""
        if self._joined:
            returned = self._queue.reassert(self._held)
            log.info("leases_reasserted", job_id=self.job_id, held=len(self._held), returned=returned)

    # Mini-batches on their way

    def _wants(self) -> int:
        """How many more to lease now: nothing until the lines have room for a good part of what they may hold."""
        if self._draining or self.state is not JobState.PROCESSING or not self.ready:
            return 0
        depth = self._look_ahead.depth
        room = sum(worker.line.room(depth) for worker in self.workers if worker.ready and not worker.ending)
        wanted = room - len(self._backlog)
        needy = any(len(worker.line) <= depth // 2 for worker in self.workers if worker.ready and not worker.ending)
        return max(0, wanted) if needy else 0

    def _receive(self, delivery: Delivery) -> None:
        self._held[delivery.token] = delivery
        self._backlog.append(InHand(delivery, 0, time.time()))

    def _feed(self, now: float) -> None:
        """Hand the backlog to the workers with the shortest lines."""
        depth = self._look_ahead.depth
        able = [worker for worker in self.workers if worker.ready and not worker.ending]
        waiting: deque[InHand] = deque()
        while self._backlog and able:
            entry = self._backlog.popleft()
            worker = min(able, key=lambda each: len(each.line))
            if worker.line.room(depth) == 0 or (entry.delivery.is_suspect and len(worker.line)):
                waiting.append(entry)
                if worker.line.room(depth) == 0 and not entry.delivery.is_suspect:
                    break
                continue
            self._hand_over(entry, worker, now)
        self._backlog.extendleft(reversed(waiting))

    def _hand_over(self, entry: InHand, worker: WorkerProcess, now: float) -> None:
        try:
            found = resolve(self.folder.path, message.decode(entry.delivery.message))
            paths = message.paths_of(found)
        except (ParallelRunError, OSError, StopIteration) as error:
            failure = Failure("INPUT_UNREADABLE", f"The mini-batch message can't be read: {error}")
            self._conclude(entry, worker, Answer(failure=failure), 0.0)
            return
        entry.items = found.items
        entry.handed_over = time.time()
        worker.line.push(entry, now)
        worker.deliver(entry.delivery.mini_batch, paths)

    def _conclude(self, entry: InHand, worker: WorkerProcess, answer: Answer, elapsed_s: float) -> None:
        outcome = self._recorder.outcome(entry, worker, answer, elapsed_s)
        if outcome.failure is not None:
            self._plans.note_error(worker.process, outcome)
        self._committer.add(outcome, worker.part_fd)

    def _on_durable(self) -> None:
        try:
            os.read(self._wake, 1 << 12)
        except BlockingIOError:
            return
        if not self._reports:
            self._reports_since = time.monotonic()
        while self._committer.durable:
            candidate = self._committer.durable.popleft()
            outcome = candidate.outcome
            reports = self._reports.retries if outcome.status == "retry" else self._reports.decided
            reports.append((outcome.mini_batch, outcome.token, candidate.encoded))
        while self._committer.failed:
            outcome = self._committer.failed.popleft().outcome
            self._reports.returns.append((outcome.mini_batch, outcome.token))

    def _return(self, entries: list[InHand]) -> None:
        self._reports.returns += [(entry.delivery.mini_batch, entry.delivery.token) for entry in entries]

    def _return_backlog(self) -> None:
        self._return(list(self._backlog))
        self._backlog.clear()

    # Workers

    def wanted_workers(self, now: float) -> int:
        """How many more workers this job could use on this node."""
        limit = self._spec.max_concurrency_per_instance or self._settings.slots
        if self._draining or self.state is not JobState.PROCESSING or now < self._spawn_after:
            return 0
        if self._init_failed >= _INIT_FAILURES_PER_WORKER * limit and not any(w.ready for w in self.workers):
            return 0
        free = sum(not worker.line for worker in self.workers)  # starting or idle: they will take some of it
        return min(limit - len(self.workers), self.ready - free)

    def spawn(self) -> None:
        """Start one more worker."""
        worker = WorkerProcess(self._plans.next_plan(self.session))
        self.workers.append(worker)
        self._watch.add(worker.results, lambda: self._on_frames(worker))
        self._watch.add(worker.pidfd, lambda: self._on_exit(worker))
        log.info("worker_started", job_id=self.job_id, process=worker.process, pid=worker.pid)

    def idle_worker(self) -> WorkerProcess | None:
        """A worker that has nothing to do and for which nothing is in sight."""
        if self.ready or self._backlog:
            return None
        return next((w for w in self.workers if w.ready and not w.line and not w.ending), None)

    def _on_frames(self, worker: WorkerProcess) -> None:
        now = time.monotonic()
        for kind, payload in worker.hear():
            if kind in (frames.DONE, frames.FAILED):
                self._on_answer(worker, kind, payload, now)
            elif kind == frames.READY:
                worker.ready = True
                self._init_failed = 0
                (init_s,) = frames.SECONDS.unpack(payload)
                log.info("worker_ready", job_id=self.job_id, process=worker.process, init_s=round(init_s, 3))
            elif kind == frames.INIT_FAILED:
                said = json.loads(payload)
                self._note_init_failure(worker, Failure("INIT_EXCEPTION", said["message"], said["traceback"]))
            elif payload:  # STOPPED, and shutdown() raised
                log.warning("shutdown_failed", job_id=self.job_id, process=worker.process, **json.loads(payload))
        worker.flush()
        self._feed(now)
        if self._draining and not worker.line:
            worker.end()

    def _on_answer(self, worker: WorkerProcess, kind: int, payload: bytes, now: float) -> None:
        mini_batch = frames.RESULT.unpack_from(payload)[0]
        elapsed_s = now - worker.line.head_since
        try:
            entry = worker.line.answered(mini_batch, now)
        except LookupError as error:  # the user's code wrote into our pipe, or worse
            log.error("worker_confused", job_id=self.job_id, process=worker.process, error=str(error))
            worker.kill()
            return
        answer = parse_answer(kind, payload)
        self._look_ahead.observe(answer.run_s)
        self._conclude(entry, worker, answer, elapsed_s)

    def _on_exit(self, worker: WorkerProcess) -> None:
        self._on_frames(worker)  # what it said before it died counts
        exit_code = self._bury(worker)
        log.info("worker_ended", job_id=self.job_id, process=worker.process, exit_code=exit_code)
        if not worker.ready and not worker.ending:
            self._note_init_failure(worker, Failure("INIT_DIED", f"The worker ended in init(), code {exit_code}."))
        head, rest = worker.line.died(running=worker.ready)
        if worker.kill_reason == "drained":
            self._return([*([head] if head else []), *rest])
            return
        self._backlog.extendleft(reversed(rest))
        if not any(other.ready and not other.ending for other in self.workers):
            self._return_backlog()  # nobody is left here to run it
        if head is not None:
            elapsed_s = time.monotonic() - worker.line.head_since
            failure = cause_of_death(
                exit_code, reason=worker.kill_reason, timeout_s=self._spec.run_invocation_timeout, oom_killed=False
            )
            self._conclude(head, worker, Answer(run_s=elapsed_s, failure=failure), elapsed_s)
        self._feed(time.monotonic())

    def _bury(self, worker: WorkerProcess) -> int:
        self.workers.remove(worker)
        self._watch.remove(worker.results)
        self._watch.remove(worker.pidfd)
        exit_code = worker.reap()
        worker.close()
        if worker.part_fd >= 0:
            self._committer.close_part(worker.part_fd)
        self._plans.clean(worker.process)
        return exit_code

    def _note_init_failure(self, worker: WorkerProcess, failure: Failure) -> None:
        worker.ending = True
        self._init_failed += failure.category == "INIT_EXCEPTION"
        self._spawn_after = time.monotonic() + min(2.0, 0.05 * 2**self._init_failed)
        self._init_failures.append(InitFailure(self._settings.node, worker.process, failure))
        self._plans.note_init_failure(worker.process, failure)

    # Time

    def check_time(self, now: float) -> None:
        """Enforce the lease, the run timeout and the end of the job; take back what waits behind a slow head."""
        if self._joined and not self._trust.holds(now) and failpoints.enabled("commit.fence"):
            self.abandon("lease_expired")
            return
        for worker in list(self.workers):
            if not worker.ready or worker.kill_reason:
                continue
            running_s = worker.line.running_s(now)
            if running_s > self._spec.run_invocation_timeout:
                self._on_frames(worker)  # this agent may have been the slow one
                if worker.line.running_s(now) > self._spec.run_invocation_timeout:
                    log.warning("run_timeout", job_id=self.job_id, process=worker.process)
                    worker.kill("timeout")
            elif running_s > SLOW_HEAD_S and len(worker.line) > 1:
                self._backlog.extendleft(reversed(worker.line.take_back(worker.take_back())))
                self._feed(now)
                self._return_backlog()  # nobody here has room: somebody elsewhere may
        if now > self._end_by:
            for worker in self.workers:
                worker.kill("drained")

    # Ends

    def drain(self, grace_s: float, now: float) -> None:
        """Finish what runs, return the rest, then leave."""
        self._draining = True
        self._end_by = now + grace_s
        self._return_backlog()
        for worker in list(self.workers):
            self._return(worker.line.take_back(worker.take_back()))
            if not worker.ready:
                worker.kill("drained")
            elif not worker.line:
                worker.end()

    def _end_workers(self, now: float) -> None:
        """The job takes no more results: an orderly end if it succeeded, a quick one otherwise."""
        if self._end_by == float("inf"):
            self._end_by = now + _ORDERLY_END_S
        self._backlog.clear()
        for worker in self.workers:
            if self.state is JobState.FINALIZING and worker.ready:
                worker.end()
            else:
                worker.kill("ended")

    def _is_done(self) -> bool:
        ended = self._draining or self.state is not JobState.PROCESSING
        if not ended or self.workers:
            return False
        # What is still being made durable is on `_held`; in a job that has ended nobody wants it any more.
        unreported = len(self._held) - len(self._reports)
        return self.state is not JobState.PROCESSING or unreported <= 0

    def close(self) -> None:
        """Forget the job; the last turn has left it, or Redis has."""
        for worker in list(self.workers):
            worker.kill("ended")
            self._bury(worker)
        self._close_session()
        self._plans.close()
