"""Every delivery that a session holds, from its lease to its report. Pure bookkeeping, no I/O.

Leased → backlog → in flight on a worker → answered → committer → report. `held` has every delivery from its lease to
its report, by token, and each leaves by exactly one report: decided, to be tried again, or returned.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from parallelrun_agent.policy.commands import Deliver
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.look_ahead import LookAhead
from parallelrun_agent.policy.worker import NEVER, Worker
from parallelrun_core.spec.retry_policy import MiniBatchRetryPolicy
from parallelrun_core.wire.leasing import Delivery, TurnReports
from parallelrun_core.wire.outcome import Outcome

_REPORT_WITHIN_S = 0.1
_RUNS = 2
"""In how many pieces a worker gets what there is for it: few, but not so few that one gets more than another."""


class Deliveries:
    def __init__(self, retries: MiniBatchRetryPolicy) -> None:
        self._retries = retries
        self.held: dict[str, Delivery] = {}
        self.backlog: deque[Assignment] = deque()
        """Leased, and not assigned to a worker yet."""
        self.nodes = 0
        """How many work for the job; 0: unknown."""
        self.reports = TurnReports()
        """What the next turns are to report."""
        self.reports_since = NEVER
        """Since when there is something to report; NEVER: there is nothing."""

    @property
    def unreported(self) -> int:
        """Return how many are still on their way to a report."""
        return len(self.held) - len(self.reports)

    @property
    def is_waiting_for_data(self) -> bool:
        """Return whether mini-batches can't be handed out yet because their files are on their way to this node."""
        return False

    def unassigned(self) -> list[str]:
        """The tokens of those that no worker has been given."""
        return [assignment.delivery.token for assignment in self.backlog]

    def report_by(self, *, busy: bool) -> float:
        """Return when the reports must be sent. Until then, they wait for a turn that leases anyway."""
        return self.reports_since + (_REPORT_WITHIN_S if busy else 0.0)

    def wanted(self, look_ahead: LookAhead, workers: Sequence[Worker], ready: int, now: float) -> int:
        """Return how many more to lease for these workers, of so many that are ready for any node."""
        return look_ahead.wanted(workers, len(self.backlog), now)

    def receive(self, assignments: Iterable[Assignment]) -> None:
        """Take note of what was leased."""
        for assignment in assignments:
            self.held[assignment.delivery.token] = assignment.delivery
            self.backlog.append(assignment)

    def hand_out(self, workers: list[Worker], depth: int, now: float) -> list[Deliver]:
        """Assign the backlog to the workers with the fewest in flight, up to `depth` each; what finds no room stays.

        Each worker gets runs of consecutive deliveries: those share a system call now, and are read in one go when the
        output is put together. A suspect delivery must run alone: the worker with the fewest in flight gets nothing
        more until it is empty.
        """
        if depth == 1:  # whoever is empty gets one, suspect or not
            empty = [worker for worker in workers if worker.in_flight.room(depth, now)]
            return [self._give(worker, [self.backlog.popleft()], now) for worker in empty[: len(self.backlog)]]
        free = [(-room, place) for place, worker in enumerate(workers) if (room := worker.in_flight.room(depth, now))]
        heapq.heapify(free)  # the one with the most room comes first
        longest_run = max(1, len(self.backlog) // (_RUNS * len(workers)))
        waiting: list[Assignment] = []
        by_worker: dict[int, list[Assignment]] = {}
        while self.backlog and free:
            minus_room, place = heapq.heappop(free)
            in_flight = workers[place].in_flight
            if self.backlog[0].runs_alone:
                run, room_left = [self.backlog.popleft()], 0  # nothing may follow it
                if in_flight:
                    waiting += run
                    continue
            else:
                run = self._unsuspected(min(longest_run, -minus_room))
                room_left = -minus_room - len(run)
            in_flight.push(run, now)
            by_worker.setdefault(place, []).extend(run)
            if room_left:
                heapq.heappush(free, (-room_left, place))
        self.backlog.extendleft(reversed(waiting))
        return [Deliver(workers[place], assignments) for place, assignments in by_worker.items()]

    def _give(self, worker: Worker, run: list[Assignment], now: float) -> Deliver:
        worker.in_flight.push(run, now)
        return Deliver(worker, run)

    def _unsuspected(self, most: int) -> list[Assignment]:
        """The first ones of the backlog, up to a suspect."""
        run: list[Assignment] = []
        while self.backlog and len(run) < most and not self.backlog[0].runs_alone:
            run.append(self.backlog.popleft())
        return run

    def hand_out_twins(self, workers: Sequence[Worker], depth: int, now: float) -> list[Deliver]:
        """Assign second deliveries of what runs here to other workers than the first ones; return what finds none.

        A worker answers by mini-batch, and scripts keep what they have begun by it.
        """
        commands = []
        for twin in [each for each in self.backlog if _has(workers, each)]:
            self.backlog.remove(twin)
            other = next((each for each in workers if _takes_twin(each, twin, depth, now)), None)
            if other is None:
                self.give_back([twin], now)
            else:
                commands.append(self._give(other, [twin], now))
        return commands

    def requeue(self, assignments: list[Assignment]) -> None:
        """Put these, which their worker had not begun, at the front of the backlog."""
        self.backlog.extendleft(reversed(assignments))

    def queue(self, assignment: Assignment) -> None:
        """Put this at the end of the backlog."""
        self.backlog.append(assignment)

    def give_back(self, assignments: Iterable[Assignment], now: float) -> None:
        """Return these uncharged: they can't be run here."""
        returns = [(assignment.delivery.mini_batch, assignment.delivery.token) for assignment in assignments]
        if returns:
            self._note(now)
            self.reports.returns += returns

    def take_isolated(self) -> list[Assignment]:
        """Take those out of the backlog whose items are run apart; returns them."""
        isolated = [each for each in self.backlog if each.isolation is not None]
        if isolated:
            self.backlog = deque(each for each in self.backlog if each.isolation is None)
        return isolated

    def give_back_backlog(self, now: float) -> None:
        """Return all that is not assigned yet."""
        self.give_back(self.backlog, now)
        self.backlog.clear()

    def give_back_held_up(self, look_ahead: LookAhead, workers: Sequence[Worker], ready: int, now: float) -> None:
        """All these workers are slow: return what another node could begin sooner."""
        if self.backlog:
            self.give_back_backlog(now)

    def drop_backlog(self) -> None:
        """Nothing more of the job will be run."""
        self.backlog.clear()

    def suspect(self, assignments: Iterable[Assignment]) -> None:
        """Take note that the worker has died that ran these: if they are tried again, then alone."""
        for each in assignments:
            token = each.delivery.token
            self.held[token] = msgspec.structs.replace(self.held[token], is_suspect=True)

    def stored(self, outcome: Outcome, encoded: bytes, now: float) -> None:
        """This outcome is durable."""
        self._note(now)
        if outcome.status == "retry":
            delivery = self.held[outcome.token]
            charged = outcome.tries - delivery.tries
            pause_ms = round(1000 * self._retries.pause_s(outcome.tries))
            self.reports.retries.append(
                (outcome.mini_batch, outcome.token, encoded, charged, pause_ms, delivery.is_suspect)
            )
        else:
            self.reports.decided.append((outcome.mini_batch, outcome.token, encoded))

    def not_stored(self, outcome: Outcome, now: float) -> None:
        """This outcome can't be made durable: return the delivery, as if it had not been run."""
        self._note(now)
        self.reports.returns.append((outcome.mini_batch, outcome.token))

    def next_reports(self) -> tuple[TurnReports, TurnReports]:
        """Return what the next turn reports, and what is left for later ones."""
        return (TurnReports(), TurnReports()) if self.reports_since == NEVER else self.reports.split()

    def acknowledged(self, reports: TurnReports) -> None:
        """The queue has received these, which were the first ones."""
        if not reports:
            return
        for token in reports.tokens():
            self.held.pop(token, None)
        self.reports = TurnReports(
            self.reports.decided[len(reports.decided) :],
            self.reports.retries[len(reports.retries) :],
            self.reports.returns[len(reports.returns) :],
        )
        if not self.reports:
            self.reports_since = NEVER

    def _note(self, now: float) -> None:
        if self.reports_since == NEVER:
            self.reports_since = now


def _has(workers: Sequence[Worker], assignment: Assignment) -> bool:
    return any(worker.in_flight.has(assignment.delivery.mini_batch) for worker in workers)


def _takes_twin(worker: Worker, twin: Assignment, depth: int, now: float) -> bool:
    in_flight = worker.in_flight
    is_free = not in_flight if twin.runs_alone else in_flight.room(depth, now) > 0
    return is_free and not in_flight.has(twin.delivery.mini_batch)
