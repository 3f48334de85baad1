"""The job machine: decisions of a node for one job. Pure, no I/O: events and the time come in, commands come out, in
order.

The driver reports each event, executes what is in `commands`, and keeps no state of its own but processes, files and
connections. So whole histories can be played without any of these.

A mini-batch goes through these parts, in this order, and so does each event as far as it concerns them:

    turn_schedule.py   it is leased, in a turn
    deliveries.py      it waits here (staged_deliveries.py: and before that for its files)
    hand_out.py        it goes to a worker of worker_pool.py, or back to the queue
    conclusions.py     its try has ended: an outcome is made durable, or its items are run apart (apart_queue.py)
    deliveries.py      its outcome is durable
    turn_schedule.py   it is reported, in another turn

What may be begun meanwhile, and when the node leaves the job, is in membership.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from parallelrun_agent.policy.apart_queue import ApartQueue
from parallelrun_agent.policy.broken_workers import BrokenWorkers
from parallelrun_agent.policy.commands import Abandon, Command, Commit, NextTurn, WatchDisk
from parallelrun_agent.policy.conclusions import Conclusions
from parallelrun_agent.policy.concurrent import bookkeeping_of
from parallelrun_agent.policy.deliveries import Deliveries
from parallelrun_agent.policy.early_failures import EarlyFailures
from parallelrun_agent.policy.hand_out import HandOut
from parallelrun_agent.policy.in_flight import Assignment, assignments_of
from parallelrun_agent.policy.membership import Membership
from parallelrun_agent.policy.outcomes import PROTOCOL_VIOLATED, OutcomeBuilder, WorkerAnswer
from parallelrun_agent.policy.staged_deliveries import StagedDeliveries
from parallelrun_agent.policy.turn_schedule import TurnSchedule
from parallelrun_agent.policy.worker import NEVER, NOBODYS_FAULT, Exit, Worker
from parallelrun_agent.policy.worker_pool import WorkerPool
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.leasing import Turn
from parallelrun_core.wire.outcome import Failure, Outcome
from parallelrun_core.wire.states import JobState


class JobMachine:
    """A job on one node, through all of its sessions.

    Args:
        limit: the most workers that the job may have on this node.
        shutdown_s: how long a worker's shutdown() may take.
        stages: whether files are elsewhere, and brought to the node before a worker gets them.
    """

    def __init__(
        self, spec: JobSpec, outcomes: OutcomeBuilder, *, limit: int, lease_s: float, shutdown_s: float, stages: bool
    ) -> None:
        self.commands: deque[Command] = deque()
        self.membership = Membership()
        self.pool = WorkerPool(self.commands, spec, limit=limit, shutdown_s=shutdown_s)
        self.workers: Sequence[Worker] = self.pool.workers
        self.apart = ApartQueue(spec, limit)
        self._broken = BrokenWorkers(limit)
        self._outcomes = outcomes
        self._in_flight, self._look_ahead = bookkeeping_of(spec)
        self._early = EarlyFailures(spec, limit)
        self._stages = stages
        self._staging, self.deliveries = self._new_deliveries()
        self.turns = TurnSchedule(
            spec, self.membership, self.pool, self._look_ahead, self._early,
            deliveries=self.deliveries, lease_s=lease_s,
        )  # fmt: skip
        self._hand_out = HandOut(
            self.commands, self.pool, self.apart, self._look_ahead, self.deliveries,
            membership=self.membership, speculates=spec.speculative_execution,
        )  # fmt: skip
        self._ends = Conclusions(
            self.commands, outcomes, self.apart, self._early, self._keep, spec=spec, membership=self.membership
        )  # fmt: skip

    # Sessions

    def _new_deliveries(self) -> tuple[StagedDeliveries | None, Deliveries]:
        """Return what a session has leased and not reported yet, twice where files are brought to the node."""
        retries = self._outcomes.retries
        staging = StagedDeliveries(self.commands, retries) if self._stages else None
        return staging, staging or Deliveries(retries)

    def _begin_session(self) -> None:
        self._staging, self.deliveries = self._new_deliveries()
        self._hand_out.deliveries = self.deliveries
        self.turns.begin_session(self.deliveries)
        self.membership.disk_is(full=False)
        self.pool.workers.clear()
        self.commands.clear()
        self.apart.clear()

    def _abandon(self, why: str) -> None:
        """The lease is gone, or may be: the session may not use anything that it holds any more."""
        delivery_count = len(self.deliveries.held)
        self._begin_session()
        self.commands.append(Abandon(why, delivery_count))

    # Turns: what is reported to the queue, and what it answers

    @property
    def is_at_rest(self) -> bool:
        """Nothing runs here and nothing is known to be ready to run: all that is awaited is to be reported."""
        may_lease = self._begins_more and self.membership.ready
        return not may_lease and not self.deliveries.backlog and not self.pool.is_busy

    @property
    def is_awaited(self) -> bool:
        """Return whether somebody waits for what has ended here."""
        return self.is_at_rest or self.turns.is_awaited

    def nap_s(self) -> float:
        """Return how long no worker will run dry."""
        if self._look_ahead.depth == 1:
            return 0.0
        return self._look_ahead.nap_s([len(worker.in_flight) for worker in self.pool.available()])

    def observed(self, state: JobState | None, ready: int, sessions: int = 0) -> None:
        """Take over what Redis has of the job, as seen between two turns: its state, how many of its mini-batches wait
        there, and how many nodes work for it, which may be unknown (0).
        """
        self.deliveries.nodes = sessions
        if self.membership.observed(state, ready):
            self.turns.ask_for_state()

    def next_turn(self, now: float) -> NextTurn | None:
        """The next turn; None while there is nothing to report, to ask for or to renew, and when nothing was joined."""
        workers = self.pool.available() if self.membership.ready and self._begins_more else ()
        return self.turns.next_turn(now, workers, leaves=self._may_leave())

    def answered_turn(self, turn: NextTurn, answer: Turn, *, sent_at: float, now: float) -> None:
        """Take over the answer to a turn. It may have taken long, so what it brought is handed out at `now`."""
        if answer.lost:
            self.membership.job_is(answer.state)
            self._abandon("session_lost")
            return
        self.turns.acknowledged(turn, answer, sent_at)
        if answer.deliveries:
            self._early.leased(now)
        self.deliveries.receive(assignments_of(answer.deliveries, can_retry_items=self.apart.can_retry_items))
        self._hand_out.to_workers(now)
        if turn.reports or self.turns.waits_for_cuts:  # most turns only lease
            self.turns.ask_again(turn, now, begins_more=self._begins_more, is_at_rest=self.is_at_rest)
        if answer.is_closed:
            self.drain(NEVER, now)
        if self.membership.state is not JobState.PROCESSING:
            self._job_ended(now)

    def _job_ended(self, now: float) -> None:
        """The job takes no more results."""
        self.deliveries.drop_backlog()
        self.apart.clear()
        self.pool.end_all(now, orderly=self.membership.state is JobState.FINALIZING)

    @property
    def _begins_more(self) -> bool:
        return self.membership.stage.begins_more

    # Files that are brought to the node

    def staged(
        self,
        token: str,
        elapsed_s: float,
        failure: Failure | None,
        now: float,
        files: int = 1,
        *,
        missing: Mapping[int, Failure] | None = None,
    ) -> None:
        """All files of a delivery are here, or this is why they can't be. One that was given back is ignored.

        Args:
            missing: by the index of the item, why its file is not here, if each file is an item, and others are here.
        """
        assignment = self._staging.staged(token, elapsed_s, now, files) if self._staging is not None else None
        if assignment is None:
            return
        if failure is not None and not self._ends.not_staged(assignment, elapsed_s, failure, missing or {}):
            return
        self.deliveries.queue(assignment)
        self._hand_out.to_workers(now)

    # Workers

    def wanted_workers(self, now: float) -> int:
        """Return how many more workers this job could use on this node."""
        return self.pool.wanted(self.membership.ready + len(self.apart), now) if self._begins_more else 0

    def worker_started(self, process: str, part_name: str, now: float) -> Worker:
        """Add a process, which is in init() now; returns what it is called from now on."""
        worker = Worker(process, part_name, now, self._in_flight())
        self.pool.workers.append(worker)
        return worker

    def init_failed(self, process: str, failure: Failure, now: float, worker: Worker | None = None) -> None:
        """A worker didn't get through init(), or couldn't even be started: no try of any mini-batch.

        Raises:
            LookupError: it has reported the end of its init() before, so it can't be trusted any more.
        """
        if worker is not None:
            self.pool.ends_in_init(worker, now)
        self.pool.init_failed(process, failure, now, now - worker.started if worker is not None else 0.0)

    def answered(self, worker: Worker, answer: WorkerAnswer, now: float) -> None:
        """Record a worker's answer for its head.

        Raises:
            LookupError: this was not the head, so it can't be trusted any more.
        """
        since_s = now - worker.in_flight.head_since
        assignment = worker.in_flight.answered(answer.mini_batch, now)
        worker.has_answered = True
        elapsed_s = answer.run_s + assignment.load_s + assignment.waited_for_permits_s
        if answer.failure is None or not self._early.is_open:
            self._look_ahead.observe(elapsed_s)
        # With more in flight, it may have begun the next one before this answer was read.
        elapsed_s = since_s if since_s > elapsed_s and not worker.in_flight else elapsed_s
        if answer.failure is None:
            self._broken.succeeded(worker)
        # Who ends the node may have ended what run() had started.
        elif self.membership.is_draining or self._broken.is_given_up(worker, answer.failure, self.pool):
            return self.deliveries.give_back([assignment], now)
        self._ends.conclude(assignment, worker, answer, elapsed_s)

    def rows_not_taken(self, worker: Worker, mini_batch: int, now: float) -> None:
        """The disk took no more of the rows of its head: nobody's try. `disk_failed` follows.

        Raises:
            LookupError: as for `answered`.
        """
        self.deliveries.give_back([worker.in_flight.answered(mini_batch, now)], now)

    def caught_up(self, worker: Worker, now: float) -> None:
        """All frames that it has sent so far were read: it may have room now, or be done."""
        if self.apart.held_back:
            self._hand_out.release(now, is_idle=self.is_at_rest)
        if self.deliveries.backlog or self.apart or self.membership.is_draining or worker.stage == "replaced":
            self._hand_out.to_workers(now)
            self._end_if_drained(worker, now)

    def violated_protocol(self, worker: Worker, now: float) -> None:
        """Its frames can't be trusted any more."""
        if worker.stage == "starting":
            self.pool.init_failed(worker.process, Failure("INIT_DIED", PROTOCOL_VIOLATED), now, now - worker.started)
        self.pool.kill(worker, "protocol_violated")

    def taken_back(self, worker: Worker, mini_batches: list[int], now: float) -> None:
        """Take over the mini-batches that `TakeBack` brought: another worker may have them, or else another node."""
        assignments = worker.in_flight.take_back(mini_batches)
        if self._begins_more:
            self.deliveries.requeue(assignments)
            self._hand_out.to_workers(now)
            self._hand_out.give_back(now)
        else:
            self.deliveries.give_back(assignments, now)
        self._end_if_drained(worker, now)

    def undelivered(self, worker: Worker, assignment: Assignment, now: float) -> None:
        """This could not be handed over: `disk_failed` or `out_of_reach` follows."""
        self.deliveries.give_back(worker.in_flight.take_back([assignment.delivery.mini_batch]), now)

    def unreadable(self, worker: Worker, assignment: Assignment, failure: Failure) -> None:
        """Its message can't be read, here or anywhere else."""
        for each in worker.in_flight.take_back([assignment.delivery.mini_batch]):
            self._ends.conclude(each, worker, WorkerAnswer(each.delivery.mini_batch, failure=failure), 0.0)

    def exited(self, worker: Worker, end: Exit, now: float, *, unread: Sequence[int] = ()) -> None:
        """Record that a worker is dead; all that it had sent was reported before.

        Args:
            unread: mini-batches whose tickets it had not even read.
        """
        self.pool.exited(worker, end.code, now)
        charged, rest = worker.left_behind(end, unread, is_draining=self.membership.is_draining)
        if worker.kill_reason == "ended":
            return  # with the job: what it had is not needed any more, and nothing has failed
        if worker.kill_reason in NOBODYS_FAULT or self.membership.is_draining:
            self.deliveries.give_back(rest, now)
        else:
            self.deliveries.requeue(rest)
        self.deliveries.suspect(each for each, _ in charged)
        self._ends.died(charged, worker, end, now)
        self._hand_out.to_workers(now)

    def _keep(self, outcome: Outcome, assignment: Assignment, worker: Worker) -> None:
        """Have an outcome made durable. With files of this assignment, a subclass has these uploaded first."""
        self.commands.append(Commit(outcome, worker))

    # The committer, and the disk

    def stored(self, outcome: Outcome, encoded: bytes, now: float) -> None:
        """This outcome is durable."""
        self.deliveries.stored(outcome, encoded, now)

    def rows_missing(self, outcome: Outcome) -> None:
        """The rows of this outcome are not where its worker said: the try has failed, and the worker is to be ended."""
        self.commands.append(Commit(self._outcomes.without_rows(outcome), None))
        self.pool.kill_writer(outcome.part, "distrusted")

    def not_stored(self, outcome: Outcome, now: float, *, part_is_lost: bool) -> None:
        """This outcome could not be made durable; a file that lost rows takes no more. `disk_failed` follows."""
        self.deliveries.not_stored(outcome, now)
        if part_is_lost:
            self.pool.kill_writer(outcome.part, "disk_full")

    def disk_failed(self, error: str, now: float) -> None:
        """Something could not be written: take nothing more, and leave each worker only what it runs."""
        if self.membership.disk_is_full:
            return
        self.membership.disk_is(full=True)
        self.commands.append(WatchDisk(error))
        self._hand_out.give_back(now)
        self.pool.take_back()

    def disk_has_room(self) -> None:
        """Something could be written again."""
        self.membership.disk_is(full=False)

    # Time

    def overdue(self, now: float) -> list[Worker]:
        """Return the workers that seem to have run for too long. Read their frames first: this node may have been the
        slow one."""
        return [worker for worker in self.workers if self.pool.hangs(worker, now)]

    def check_time(self, now: float) -> None:
        """Enforce the lease, the timeouts and the end of a drain; return what waits for nothing but slow heads."""
        if self.turns.lease_is_over(now):
            self._abandon("lease_expired")
            return
        self.pool.check_time(now)
        if self.apart.held_back:
            self._hand_out.release(now, is_idle=self.is_at_rest)
            self._hand_out.to_workers(now)
        self._hand_out.give_back_held_up(self.membership.ready, now)
        if now > self.membership.drain_by:
            self.pool.kill_all("drained")

    # Ends

    def end_idle_worker(self, now: float) -> bool:
        """End one that has nothing to do and for which nothing is in sight; whether there was one."""
        worker = self.pool.idle() if not self.membership.ready and not self.deliveries.backlog else None
        if worker is not None:
            self.pool.end(worker, now)
        return worker is not None

    def drain(self, grace_s: float, now: float) -> None:
        """Finish what runs, return the rest, then leave; a second call can only shorten the grace."""
        if self.membership.drain(now + grace_s):
            self.deliveries.give_back_backlog(now)
            self.deliveries.give_back(self.apart.clear(), now)
            self.pool.drain()

    def _end_if_drained(self, worker: Worker, now: float) -> None:
        if (self.membership.is_draining or worker.stage == "replaced") and not worker.in_flight:
            self.pool.end(worker, now)

    def _may_leave(self) -> bool:
        return self.membership.may_leave(self.workers, self.deliveries)
