"""What a node decides for one job. Pure, no I/O: events and the time come in, commands come out, in order.

Whoever drives it tells it what happened, then does what is in `commands`, and keeps nothing in mind that is not a
process, a file or a connection. So whole histories can be played without any of these.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from parallelrun_agent.policy.commands import Abandon, Command, Commit
from parallelrun_agent.policy.deliveries import Deliveries
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.lease_clock import LeaseClock
from parallelrun_agent.policy.look_ahead import TURN_S, LookAhead
from parallelrun_agent.policy.outcomes import CONFUSED, Answer, Exit, OutcomeBuilder, cause_of_death
from parallelrun_agent.policy.worker import NEVER, NOBODYS_FAULT, Worker
from parallelrun_agent.policy.worker_pool import WorkerPool
from parallelrun_core.outcome import Failure, Outcome
from parallelrun_core.spec import JobSpec
from parallelrun_core.states import JobState
from parallelrun_core.store.agent_queue import Mode, Reports, Turn

_TURNS_PER_LEASE = 4


class NextTurn(msgspec.Struct, frozen=True):
    """What to say to the queue, and how many mini-batches to ask for."""

    mode: Mode
    reports: Reports
    want: int


class JobMachine:
    """One job on one node, through all of its sessions.

    Args:
        limit: the most workers that the job may have on this node.
        shutdown_s: how long a worker's shutdown() may take.
    """

    def __init__(
        self, spec: JobSpec, builder: OutcomeBuilder, *, limit: int, lease_s: float, shutdown_s: float
    ) -> None:
        self.commands: deque[Command] = deque()
        load_s, run_s = spec.task_overhead_timeout, spec.run_invocation_timeout
        self.pool = WorkerPool(self.commands, limit=limit, load_s=load_s, run_s=run_s, shutdown_s=shutdown_s)
        self.state: JobState | None = JobState.PROCESSING
        self.ready = 0
        """Mini-batches that wait on Redis, as far as this node knows."""
        self.left = False
        self.gather_until = NEVER
        """Until when to wait for answers that are due before a turn could bring anything; NEVER: for none."""
        self._spec = spec
        self._outcome_builder = builder
        self._lease_s = lease_s
        self._look_ahead = LookAhead(enabled=spec.look_ahead)
        self._draining = False
        self._end_by = NEVER
        self._begin_session()

    def _begin_session(self) -> None:
        self.joined = False
        self.disk_is_full = False
        self.deliveries = Deliveries()
        self._lease_clock = LeaseClock(self._lease_s)
        self._turn_by = 0.0
        self.pool.workers.clear()
        self.commands.clear()

    def _abandon(self, why: str) -> None:
        """The lease is gone, or may be: nothing that this session holds is its own any more."""
        held = len(self.deliveries.held)
        self._begin_session()
        self.commands.append(Abandon(why, held))

    # Turns: what is said to the queue, and what it answers

    def due_at(self) -> float:
        """When there must be a turn, to report or because answers were waited for long enough; NEVER: for neither."""
        report_by = self._report_by()
        return report_by if report_by < self.gather_until else self.gather_until

    def _report_by(self) -> float:
        since = self.deliveries.reports_since
        return since if since == NEVER else self.deliveries.report_by(busy=self.pool.is_busy)

    @property
    def is_at_rest(self) -> bool:
        """Nothing runs here and nothing is known to be there to run: what is not reported yet is waited for."""
        return not (self._is_open and self.ready) and not self.deliveries.backlog and not self.pool.is_busy

    @property
    def nap_s(self) -> float:
        """How long no worker will run dry: half of what the least loaded one needs if all runs are quick."""
        if self._look_ahead.depth == 1:
            return 0.0
        counts = [len(worker.in_flight) for worker in self.pool.available()]
        return (min(counts) - 1) * self._look_ahead.shortest_s / 2 if counts else 0.0

    def look_again(self) -> None:
        """Take the next turn at once, to see whether the job has ended."""
        self._turn_by = 0.0

    def next_turn(self, now: float) -> NextTurn | None:
        """The next turn; None while nothing is to be said, asked for or renewed, and when there is nothing to leave."""
        is_done, want = self._is_done(), self._wants(now)
        if not (want or is_done or now >= self._turn_by or now >= self._report_by()):
            return None
        mode: Mode = "stay" if self.joined else "join"
        if is_done:
            mode = "leave"
            if not self.joined:
                self.left = True
                return None
        sending, rest = self.deliveries.next_reports()
        if mode == "leave" and rest and self.state is JobState.PROCESSING:
            mode = "stay"  # what doesn't fit in one turn must be said before the last one
        return NextTurn(mode, sending, 0 if mode == "leave" else want)

    def answered_turn(self, turn: NextTurn, answer: Turn, *, sent_at: float, now: float) -> None:
        """What a turn brought; it may have been long in coming, and the time of a run() begins now."""
        if answer.lost:
            self.state = answer.state
            self._abandon("session_lost")
            return
        self.joined = True
        self.deliveries.acknowledged(turn.reports)
        self._lease_clock.renewed(sent_at)
        self._turn_by = sent_at + self._lease_s / _TURNS_PER_LEASE
        self.state, self.ready = answer.state, answer.ready
        self.left = turn.mode == "leave"
        self.deliveries.receive(answer.deliveries)
        self._hand_out(now)
        if self.state is not JobState.PROCESSING:  # the job takes no more results
            self.deliveries.backlog.clear()
            self.pool.end_all(now, orderly=self.state is JobState.FINALIZING)

    def lease_left_s(self, now: float) -> float:
        """How long this session may still be believed to hold what it has leased."""
        return self._lease_clock.left_s(now) if self.joined else 0.0

    def _wants(self, now: float) -> int:
        """How many more to lease now: nothing until some worker has room for a good part of its depth.

        Nor while others will answer sooner than a turn could bring anything: their wishes are then in the same turn.
        """
        self.gather_until = NEVER
        if not self.ready or not self._is_open:
            return 0
        depth = self._look_ahead.depth
        most = wanted = 0
        latest = now - TURN_S
        for worker in self.pool.available():
            in_flight = worker.in_flight
            room = in_flight.room(depth, now)
            wanted += room
            if room > most:
                most = room
            elif not room and in_flight.head_since > latest:
                latest = in_flight.head_since
        waiting = len(self.deliveries.backlog)
        if most - waiting < (depth + 1) // 2:
            return 0
        if latest + TURN_S > now and self._look_ahead.is_brief:
            self.gather_until = latest + TURN_S
            return 0
        return wanted - waiting

    @property
    def _is_open(self) -> bool:
        """More can be begun here."""
        return self.state is JobState.PROCESSING and not self._draining and not self.disk_is_full

    # Workers

    def wanted_workers(self, now: float) -> int:
        """How many more workers this job could use on this node."""
        return self.pool.wanted(self.ready, now) if self._is_open else 0

    def worker_started(self, worker: Worker) -> None:
        self.pool.workers.append(worker)

    def worker_ready(self, worker: Worker) -> None:
        """It is through init(). It gets something when all that it said was read (`caught_up`).

        Raises:
            LookupError: as for `init_failed`.
        """
        self.pool.got_ready(worker)

    def init_failed(self, process: str, failure: Failure, now: float, worker: Worker | None = None) -> None:
        """A worker didn't get through init(), or couldn't even be started: nobody's try.

        Raises:
            LookupError: it has said before how its init() ended, so it can't be trusted any more.
        """
        if worker is not None:
            self.pool.ends_in_init(worker, now)
        self.pool.init_failed(process, failure, now)

    def answered(self, worker: Worker, answer: Answer, now: float) -> None:
        """It has answered for its head.

        Raises:
            LookupError: this was not the head, so it can't be trusted any more.
        """
        since_s = now - worker.in_flight.head_since
        assignment = worker.in_flight.answered(answer.mini_batch, now)
        worker.has_answered = True
        elapsed_s = answer.run_s + assignment.load_s
        self._look_ahead.observe(elapsed_s)
        # With more in flight, it may have begun the next one before this answer was read.
        if since_s > elapsed_s and not worker.in_flight:
            elapsed_s = since_s
        self._conclude(assignment, worker, answer, elapsed_s)

    def rows_not_taken(self, worker: Worker, mini_batch: int, now: float) -> None:
        """The disk took no more of the rows of its head: nobody's try. `disk_failed` follows.

        Raises:
            LookupError: as for `answered`.
        """
        self.deliveries.give_back([worker.in_flight.answered(mini_batch, now)], now)

    def caught_up(self, worker: Worker, now: float) -> None:
        """All that it has said so far was told: it may have room now, or be done."""
        if self.deliveries.backlog or self._draining or worker.replaced:
            self._hand_out(now)
            self._end_if_drained(worker, now)

    def confused(self, worker: Worker, now: float) -> None:
        """What it says can't be trusted any more."""
        if not worker.ready and not worker.ending:
            self.init_failed(worker.process, Failure("INIT_DIED", CONFUSED), now)
        self.pool.kill(worker, "confused")

    def taken_back(self, worker: Worker, mini_batches: list[int], now: float) -> None:
        """What `TakeBack` brought: another worker may have it, or else another node."""
        assignments = worker.in_flight.take_back(mini_batches)
        if self._is_open:
            self.deliveries.requeue(assignments)
            self._hand_out(now)
            self.deliveries.give_back_backlog(now)
        else:
            self.deliveries.give_back(assignments, now)
        self._end_if_drained(worker, now)

    def undelivered(self, worker: Worker, assignment: Assignment, now: float) -> None:
        """Something kept this from being handed over: `disk_failed` or `out_of_reach` follows."""
        self.deliveries.give_back(worker.in_flight.take_back([assignment.delivery.mini_batch]), now)

    def out_of_reach(self, worker: Worker) -> None:
        """What it has made of its folders keeps it from being handed anything: another one shall do its work."""
        self.pool.kill(worker, "distrusted")

    def unreadable(self, worker: Worker, assignment: Assignment, failure: Failure) -> None:
        """Its message can't be read, and won't be by anybody."""
        for each in worker.in_flight.take_back([assignment.delivery.mini_batch]):
            self._conclude(each, worker, Answer(each.delivery.mini_batch, failure=failure), 0.0)

    def exited(self, worker: Worker, end: Exit, now: float, *, unread: Sequence[int] = ()) -> None:
        """It is dead, and all that it had said was told before.

        Args:
            unread: mini-batches that it had not even taken out of its socket.
        """
        self.pool.workers.remove(worker)
        if not worker.ready and worker.kill_reason == "init_timeout":
            self.init_failed(worker.process, Failure("INIT_TIMEOUT", self.pool.too_long_in_init), now)
        elif not worker.ready and not worker.ending:
            failure = Failure("INIT_DIED", f"The worker ended in init(), code {end.code}.")
            self.init_failed(worker.process, failure, now)
        # One that never gets as far as its first answer must be charged, or this would go on for ever.
        not_begun = worker.in_flight.take_back(unread) if worker.has_answered else []
        head, rest = worker.in_flight.died(running=worker.ready)
        rest += not_begun
        if worker.kill_reason == "ended":
            return  # with the job: nobody wants what it had, and nothing has failed
        # A head that began after the worker was condemned is not what hung: that one has been answered since.
        is_innocent = worker.kill_reason in NOBODYS_FAULT or worker.in_flight.head_since > worker.condemned_at
        if head is not None and is_innocent:
            rest.insert(0, head)
            head = None
        if worker.kill_reason in NOBODYS_FAULT or self._draining:
            self.deliveries.give_back(rest, now)
        else:
            self.deliveries.requeue(rest)
        if head is not None:
            elapsed_s = now - worker.in_flight.head_since
            failure = cause_of_death(end, reason=worker.kill_reason, spec=self._spec)
            answer = Answer(head.delivery.mini_batch, run_s=elapsed_s, failure=failure)
            self._conclude(head, worker, answer, elapsed_s)
        self._hand_out(now)

    def _hand_out(self, now: float) -> None:
        """Give the backlog to the workers; when nobody is left here to run it, give it back."""
        if not self.deliveries.backlog:
            return
        available = self.pool.available()
        if not available or self.disk_is_full:
            self.deliveries.give_back_backlog(now)
            return
        self.commands += self.deliveries.hand_out(available, self._look_ahead.depth, now)

    def _conclude(self, assignment: Assignment, worker: Worker, answer: Answer, elapsed_s: float) -> None:
        self.commands.append(Commit(self._outcome_builder.build(assignment, worker, answer, elapsed_s), worker))

    # What the committer says

    def kept(self, outcome: Outcome, encoded: bytes, now: float) -> None:
        """This outcome is durable."""
        self.deliveries.kept(outcome, encoded, now)

    def rows_missing(self, outcome: Outcome) -> None:
        """The rows of this outcome are not where its worker said: a try that failed, and a worker to be ended."""
        self.commands.append(Commit(self._outcome_builder.without_rows(outcome), None))
        self.pool.kill_writer(outcome.part, "distrusted")

    def not_kept(self, outcome: Outcome, now: float, *, part_is_lost: bool) -> None:
        """This outcome could not be made durable; a file that lost rows takes no more. `disk_failed` follows."""
        self.deliveries.not_kept(outcome, now)
        if part_is_lost:
            self.pool.kill_writer(outcome.part, "disk_full")

    # The disk

    def disk_failed(self, now: float) -> None:
        """Something could not be written: take nothing more, and leave everybody with what runs."""
        if self.disk_is_full:
            return
        self.disk_is_full = True
        self.deliveries.give_back_backlog(now)
        self.pool.take_back()

    def disk_has_room(self) -> None:
        self.disk_is_full = False

    # Time

    def overdue(self, now: float) -> list[Worker]:
        """Those that seem to have run for too long. Hear them first: this node may have been the slow one."""
        return [worker for worker in self.pool.workers if self.pool.hangs(worker, now)]

    def check_time(self, now: float) -> None:
        """Enforce the lease, the run timeout and the end of the job; let others have what waits for a slow head."""
        if self.joined and not self._lease_clock.is_valid(now):
            self._abandon("lease_expired")
            return
        self.pool.check_time(now)
        if self.deliveries.backlog and self.pool.is_held_up(now):
            self.deliveries.give_back_backlog(now)
        if now > self._end_by:
            self.pool.kill_all("drained")

    # Ends

    def replace(self, worker: Worker) -> None:
        """End it when it has done what it runs: whoever is started in its place has what it lacks."""
        self.pool.replace(worker)

    def end_idle_worker(self, now: float) -> bool:
        """End one that has nothing to do and for which nothing is in sight; whether there was one."""
        worker = self.pool.idle() if not self.ready and not self.deliveries.backlog else None
        if worker is not None:
            self.pool.end(worker, now)
        return worker is not None

    def drain(self, grace_s: float, now: float) -> None:
        """Finish what runs, return the rest, then leave."""
        self._draining = True
        self._end_by = now + grace_s
        self.deliveries.give_back_backlog(now)
        self.pool.take_back()
        for worker in self.pool.workers:
            if not worker.ready:
                self.pool.kill(worker, "drained")

    def _end_if_drained(self, worker: Worker, now: float) -> None:
        if (self._draining or worker.replaced) and worker.ready and not worker.in_flight:
            self.pool.end(worker, now)

    def _is_done(self) -> bool:
        ended = self._draining or self.state is not JobState.PROCESSING
        if not ended or self.pool.workers:
            return False
        # Outcomes that are still being made durable count as unreported; once the job has ended, nobody wants them.
        return self.state is not JobState.PROCESSING or self.deliveries.unreported <= 0
