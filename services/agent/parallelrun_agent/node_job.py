"""One job, as one node works for it: its workers, what they have in hand, and its dealings with the queue.

The flow of a mini-batch: leased by `turn` → backlog → a worker's line → answered → committer → reports → `turn`.
Whatever is between the first and the last of these is in `_held`, by token.
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import TYPE_CHECKING

from parallelrun_agent.committer import Committer
from parallelrun_agent.crew import Crew, Watch
from parallelrun_agent.disk import DiskWatch
from parallelrun_agent.line import InHand
from parallelrun_agent.look_ahead import LookAhead
from parallelrun_agent.outcomes import Answer, Recorder
from parallelrun_agent.packets import packet_of
from parallelrun_agent.plans import PlanMaker
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.trust import Trust
from parallelrun_agent.worker_process import WorkerProcess
from parallelrun_core import failpoints, message
from parallelrun_core.disktrouble import is_disk_trouble
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.ids import new_session
from parallelrun_core.jobfolder import JobFolder
from parallelrun_core.manifest import resolve
from parallelrun_core.outcome import Failure
from parallelrun_core.states import JobState
from parallelrun_core.store.agent_queue import AgentQueue, Delivery, Mode, Reports
from parallelrun_core.store.leader_queue import report_init_failure
from parallelrun_core.telemetry import logger

if TYPE_CHECKING:
    from redis import Redis

log = logger()

_TURNS_PER_LEASE = 4
_REPORT_WITHIN_S = 0.005


class NodeJob:
    """Everything a node does for one job. Used by the agent's one thread only."""

    def __init__(self, redis: Redis, folder: JobFolder, settings: AgentSettings, watch: Watch) -> None:
        self.folder = folder
        self.job_id = folder.job_id
        self.ready = 0
        """Mini-batches that wait on Redis, as far as this node knows."""
        self.state: JobState | None = JobState.PROCESSING
        self.left = False
        record = folder.record()
        self._spec = record.job_spec()
        self._redis = redis
        self._settings = settings
        self._watch = watch
        self._plans = PlanMaker(folder, record, self._spec, settings, watch.gpus)
        self._crew = Crew(self, self._plans, self._spec, settings, watch)
        self._look_ahead = LookAhead(enabled=self._spec.look_ahead)
        self._recorder = Recorder(settings.node, generation=folder.generation(), run_max_try=self._spec.run_max_try)
        self._draining = False
        self._end_by = float("inf")
        self._open_session()

    @property
    def workers(self) -> list[WorkerProcess]:
        return self._crew.workers

    @property
    def disk_is_full(self) -> bool:
        return self._disk.is_full

    # The session: a fresh one for each time that this node joins the job

    def _open_session(self) -> None:
        self.session = new_session(self._settings.node)
        self._queue = AgentQueue(
            self._redis, self.job_id, session=self.session, node=self._settings.node, lease_ms=self._settings.lease_ms
        )
        self._trust = Trust(self._settings.lease_seconds)
        self._disk = DiskWatch(self.folder.parts, self.session, job_id=self.job_id)
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
        self._crew.kill_all("abandoned")
        self._close_session()
        self._open_session()

    # Dealings with Redis; all of these raise redis-py's errors, and can be repeated after one

    def turn_due(self, now: float) -> bool:
        """Whether there is something to say, to ask for, or a lease to renew."""
        return (
            now >= self.report_by
            or now >= self._turn_by
            or self._wants() > 0
            or bool(self._crew.init_failures)
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
        while self._crew.init_failures:
            report_init_failure(self._redis, self.job_id, self._crew.init_failures[0])
            self._crew.init_failures.pop(0)
        fenced = failpoints.enabled("commit.fence")
        mode: Mode = "stay" if self._joined and fenced else "join"
        if self._is_done():
            mode = "leave"
            if not self._joined:
                self.left = True
                return
        sending, rest = self._reports.split()
        if mode == "leave" and rest and self.state is JobState.PROCESSING:
            mode = "stay"  # what doesn't fit in one turn must be said before the last one
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
        now = time.monotonic()  # the answer may have been long in coming, and the time of a run() begins here
        self.has_room(now)
        if self.state is not JobState.PROCESSING:
            self._end_workers(now)

    def trusted_s(self, now: float) -> float:
        """How long this session may still be believed to hold what it has leased."""
        return self._trust.left_s(now) if self._joined else 0.0

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
        if self._draining or self.state is not JobState.PROCESSING or not self.ready or self._disk.is_full:
            return 0
        depth, now = self._look_ahead.depth, time.monotonic()
        rooms = [worker.line.room(depth, now) for worker in self._crew.able()]
        needy = any(room >= (depth + 1) // 2 for room in rooms)
        return max(0, sum(rooms) - len(self._backlog)) if needy else 0

    def _receive(self, delivery: Delivery) -> None:
        self._held[delivery.token] = delivery
        self._backlog.append(InHand(delivery, 0, time.time()))

    def has_room(self, now: float) -> None:
        """Hand the backlog to the workers with the shortest lines."""
        depth, able = self._look_ahead.depth, self._crew.able()
        if self._backlog and (not able or self._disk.is_full):
            self._return_backlog()  # nobody is left here to run it
        waiting: deque[InHand] = deque()
        while self._backlog and able:
            entry = self._backlog.popleft()
            worker = max(able, key=lambda each: each.line.room(depth, now))
            if worker.line.room(depth, now) == 0:
                waiting.append(entry)
                break
            if entry.delivery.is_suspect and len(worker.line):
                waiting.append(entry)
                continue
            self._hand_over(entry, worker, now)
        self._backlog.extendleft(reversed(waiting))

    def _hand_over(self, entry: InHand, worker: WorkerProcess, now: float) -> None:
        try:
            found = resolve(self.folder.path, message.decode(entry.delivery.message))
            kind, payload = packet_of(found)
        except (ParallelRunError, OSError, StopIteration) as error:
            if isinstance(error, OSError) and is_disk_trouble(error):
                self.give_back([entry])
                self.disk_failed(str(error))
                return
            failure = Failure("INPUT_UNREADABLE", f"The mini-batch message can't be read: {error}")
            self.concluded(entry, worker, Answer(failure=failure), 0.0)
            return
        entry.items = found.items
        entry.handed_over = time.time()
        try:
            worker.deliver(entry.delivery.mini_batch, payload, kind)
        except OSError as error:  # a long one goes by way of a file
            self.give_back([entry])
            self.disk_failed(str(error))
            return
        worker.line.push(entry, now)

    # What the crew has to say (see `Owner`)

    def answered(self, entry: InHand, worker: WorkerProcess, answer: Answer, elapsed_s: float) -> None:
        self._look_ahead.observe(answer.run_s + entry.load_s)
        self.concluded(entry, worker, answer, elapsed_s)

    def concluded(self, entry: InHand, worker: WorkerProcess, answer: Answer, elapsed_s: float) -> None:
        outcome = self._recorder.outcome(entry, worker, answer, elapsed_s)
        if outcome.failure is not None:
            self._plans.note_error(worker.process, outcome)
        self._committer.add(outcome, worker.part_fd)

    def not_begun(self, entries: list[InHand]) -> None:
        if self._draining:
            self.give_back(entries)
        else:
            self._backlog.extendleft(reversed(entries))

    def give_back(self, entries: list[InHand]) -> None:
        self._note_report()
        self._reports.returns += [(entry.delivery.mini_batch, entry.delivery.token) for entry in entries]

    def disk_failed(self, error: str) -> None:
        if not self._disk.is_full:
            self._disk.failed(error, time.monotonic())
            self._return_backlog()
            self._crew.take_back_all()

    def part_ended(self, part_fd: int) -> None:
        self._committer.close_part(part_fd)

    def _on_durable(self) -> None:
        try:
            os.read(self._wake, 1 << 12)
        except BlockingIOError:
            return
        self._note_report()
        while self._committer.durable:
            candidate = self._committer.durable.popleft()
            outcome = candidate.outcome
            reports = self._reports.retries if outcome.status == "retry" else self._reports.decided
            reports.append((outcome.mini_batch, outcome.token, candidate.encoded))
            self._disk.kept()
        while self._committer.rowless:
            candidate = self._committer.rowless.popleft()
            outcome = self._recorder.without_rows(candidate.outcome)
            self._plans.note_error(outcome.process, outcome)
            self._committer.add(outcome, -1)
            self._crew.end_writer(candidate.part_fd, "distrusted")
        while self._committer.failed:
            candidate, error, part_is_lost = self._committer.failed.popleft()
            self._reports.returns.append((candidate.outcome.mini_batch, candidate.outcome.token))
            if part_is_lost:
                self._crew.end_writer(candidate.part_fd, "disk_full")
            self.disk_failed(error)

    def _note_report(self) -> None:
        if not self._reports:
            self._reports_since = time.monotonic()

    def _return_backlog(self) -> None:
        self.give_back(list(self._backlog))
        self._backlog.clear()

    # Workers

    def wanted_workers(self, now: float) -> int:
        """How many more workers this job could use on this node."""
        if self._draining or self.state is not JobState.PROCESSING or self._disk.is_full:
            return 0
        return self._crew.wanted(self.ready, now)

    def spawn(self) -> None:
        """Start one more worker."""
        self._crew.spawn(self.session)

    def idle_worker(self) -> WorkerProcess | None:
        """A worker that has nothing to do and for which nothing is in sight."""
        if self.ready or self._backlog:
            return None
        return next((worker for worker in self._crew.able() if not worker.line), None)

    # Time

    def check_time(self, now: float) -> None:
        """Enforce the lease, the run timeout and the end of the job; take back what waits behind a slow head."""
        fenced = failpoints.enabled("commit.fence") and failpoints.enabled("lease.trust")
        if self._joined and not self._trust.holds(now) and fenced:
            self.abandon("lease_expired")
            return
        self._disk.look(now)
        if self._crew.check_time(now):
            self.has_room(now)
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
        self._crew.drain()

    def _end_workers(self, now: float) -> None:
        """The job takes no more results: an orderly end if it succeeded, a quick one otherwise."""
        self._backlog.clear()
        self._crew.end(orderly=self.state is JobState.FINALIZING, now=now)

    def _is_done(self) -> bool:
        ended = self._draining or self.state is not JobState.PROCESSING
        if not ended or self.workers:
            return False
        # What is still being made durable is on `_held`; in a job that has ended nobody wants it any more.
        unreported = len(self._held) - len(self._reports)
        return self.state is not JobState.PROCESSING or unreported <= 0

    def close(self) -> None:
        """Forget the job; the last turn has left it, or Redis has."""
        self._crew.kill_all("ended")
        self._close_session()
        self._plans.close()
