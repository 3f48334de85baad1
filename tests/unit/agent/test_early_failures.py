"""How little a node begins when all has failed on it so far, and how soon it goes on at full speed."""

from __future__ import annotations

from parallelrun_agent.policy.job_machine import JobMachine
from parallelrun_agent.policy.outcomes import WorkerAnswer
from parallelrun_core.wire.failure import fewest_failures
from parallelrun_core.wire.leasing import Delivery, Turn
from parallelrun_core.wire.outcome import Failure
from parallelrun_core.wire.states import JobState
from tests.unit.agent.factories import MAX_TRY, SLOTS, machine

BAD = Failure("RUN_EXCEPTION", "ValueError: bad")
FEWEST = fewest_failures(SLOTS)
MANY = 1000


class Node:
    """A node with one worker whose run() takes no time."""

    def __init__(self, *, fail_fast: bool) -> None:
        self.machine: JobMachine = machine(fail_fast=fail_fast, on_failure="mini_batch")
        self.machine.pool.got_ready(self.machine.worker_started("p0", "s.p0", 0.0))
        self.leased = 0

    def run(self, now: float, failure: Failure | None) -> int:
        """Lease and answer what is wanted at this time; returns how many that were."""
        self.machine.observed(JobState.PROCESSING, MANY)
        turn = self.machine.next_turn(now)
        if turn is None or not turn.want:
            return 0
        numbers = range(self.leased, self.leased + turn.want)
        deliveries = tuple(Delivery(number, f"s/{number}", MAX_TRY - 1, False, b"") for number in numbers)
        self.leased += turn.want
        answer = Turn(JobState.PROCESSING, ready=MANY, deliveries=deliveries)
        self.machine.answered_turn(turn, answer, sent_at=now, now=now)
        (worker,) = self.machine.pool.available()
        while worker.in_flight:
            number = worker.in_flight.assignments[0].delivery.mini_batch
            self.machine.answered(worker, WorkerAnswer(number, run_s=1e-6, failure=failure), now)
            self.machine.caught_up(worker, now)
        self.machine.commands.clear()
        return turn.want

    def run_all(self, now: float, failure: Failure | None) -> int:
        """Run for as long as something is wanted at this time; returns how many were run."""
        before = self.leased
        while self.leased < MANY and self.run(now, failure):
            pass
        return self.leased - before


def test_early_failures_begin_one_by_one_with_pauses_until_the_leader_has_looked() -> None:
    node = Node(fail_fast=True)
    assert node.run_all(1.0, BAD) == FEWEST + 1
    assert node.machine.turns.due_at() == 1.1
    assert node.run_all(1.05, BAD) == 0
    assert node.run_all(1.11, BAD) == 1
    assert node.run_all(3.2, BAD) > FEWEST, "the leader has had its time"


def test_early_failures_hold_nothing_back_after_a_success() -> None:
    node = Node(fail_fast=True)
    node.run_all(1.0, BAD)
    assert node.run(1.11, None) == 1
    assert node.run_all(1.11, BAD) > FEWEST


def test_early_failures_hold_nothing_back_where_a_job_is_not_given_up() -> None:
    assert Node(fail_fast=False).run_all(1.0, BAD) >= MANY
