"""What the agent's proofs find when a rule of its machine is broken."""

from __future__ import annotations

from typing import Any

import pytest

from parallelrun_agent.node.memory import OomWatch
from parallelrun_agent.policy.commands import Commit
from parallelrun_agent.policy.in_flight import Assignment, InFlight
from parallelrun_agent.policy.job_machine import JobMachine
from parallelrun_agent.policy.lease_clock import LeaseClock
from parallelrun_agent.policy.membership import Membership
from parallelrun_agent.policy.outcomes import OutcomeBuilder, WorkerAnswer
from parallelrun_agent.policy.worker import Exit, Worker
from parallelrun_agent.policy.worker_pool import WorkerPool
from parallelrun_agent.workers.delivery_ring import DeliveryRing
from parallelrun_core.spec.retry_policy import MiniBatchRetryPolicy
from parallelrun_core.wire.outcome import Failure, Outcome
from tests.twins.sabotage import always, expect_failure, nothing
from tests.unit.agent import test_delivery_ring as delivery_ring
from tests.unit.agent import test_in_flight as in_flight
from tests.unit.agent import test_machine as machine
from tests.unit.agent import test_memory as memory
from tests.unit.agent import test_outcomes as outcomes

FAILURE = Failure("SIGNAL", "m")
DIED = InFlight.died
EXITED = JobMachine.exited
BUILD = OutcomeBuilder.build
NODE = OutcomeBuilder("node", generation=0, retries=MiniBatchRetryPolicy(2))


def test_a_charge_of_all_in_flight_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def charge_all(node: JobMachine, worker: Worker, end: Exit, now: float) -> None:
        for assignment in list(worker.in_flight.assignments)[1:]:
            answer = WorkerAnswer(assignment.delivery.mini_batch, failure=FAILURE)
            node.commands.append(Commit(NODE.build(assignment, worker, answer, 0.0), worker))
        EXITED(node, worker, end, now)

    monkeypatch.setattr(JobMachine, "exited", charge_all)
    with expect_failure():
        machine.test_the_head_alone_is_charged_for_a_death()


def test_a_charge_for_a_death_in_init_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkerPool, "available", lambda pool: [each for each in pool.workers if not each.is_to_end])
    monkeypatch.setattr(InFlight, "died", lambda of, *, running: DIED(of, running=True))
    with expect_failure():
        machine.test_a_death_in_init_is_charged_to_no_mini_batch()


def test_one_counter_for_tries_and_for_lost_nodes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def count_both(builder: OutcomeBuilder, assignment: Assignment, *rest: Any) -> Outcome:
        made = BUILD(builder, assignment, *rest)
        tries = made.tries + assignment.delivery.is_suspect
        status = "failed" if made.failure is not None and tries >= builder.retries.max_tries else made.status
        return type(made)(**{**{name: getattr(made, name) for name in made.__struct_fields__}, "status": status})

    monkeypatch.setattr(OutcomeBuilder, "build", count_both)
    with expect_failure():
        outcomes.test_a_delivery_that_was_lost_with_its_node_is_no_try()


def test_a_slow_head_that_keeps_what_waits_behind_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkerPool, "_check_head", nothing)
    with expect_failure():
        machine.test_a_slow_head_gives_what_waits_behind_it_to_others()


def test_belief_in_any_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InFlight, "answered", lambda of, mini_batch, now: of.assignments.popleft())
    with expect_failure():
        in_flight.test_an_answer_that_is_not_for_the_head_is_not_believed()


def test_blindness_to_the_kernels_count_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(OomWatch, "poll", always(False))
    with expect_failure():
        memory.test_the_kernels_count_of_kills_is_seen_once(tmp_path)


def test_time_without_end_for_shutdown_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkerPool, "check_time", nothing)
    with expect_failure():
        machine.test_a_job_that_succeeded_lets_its_workers_shut_down_and_asks_who_hangs()


def test_time_without_end_for_init_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkerPool, "check_time", nothing)
    with expect_failure():
        machine.test_who_hangs_in_init_is_asked_where_and_ended_also_when_others_got_through()


def test_a_charge_for_a_full_disk_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def charge(node: JobMachine, worker: Worker, mini_batch: int, now: float) -> None:
        node.answered(worker, WorkerAnswer(mini_batch, failure=FAILURE), now)

    monkeypatch.setattr(JobMachine, "rows_not_taken", charge)
    with expect_failure():
        machine.test_rows_that_the_disk_did_not_take_cost_nobody_a_try()


def test_work_that_a_node_keeps_when_it_is_told_to_stop_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkerPool, "take_back", nothing)
    with expect_failure():
        machine.test_a_node_that_is_told_to_stop_returns_what_it_has_not_begun()


@pytest.mark.parametrize("ends", ["run() has failed", "the worker has died"])
def test_a_charge_for_what_fails_on_a_node_that_leaves_is_found(monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    monkeypatch.setattr(Membership, "is_draining", property(always(False), nothing), raising=False)
    with expect_failure():
        machine.test_what_fails_on_a_node_that_leaves_costs_nobody_a_try(ends)


def test_a_clock_without_a_margin_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_margin(clock: LeaseClock, lease_s: float) -> None:
        clock._window, clock._until = lease_s, float("-inf")

    monkeypatch.setattr(LeaseClock, "__init__", without_margin)
    with expect_failure():
        machine.test_the_deadline_counts_from_when_the_turn_was_sent()


def test_a_ring_that_forgets_what_is_still_needed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    needed_from = property(lambda ring: ring.end, nothing)
    monkeypatch.setattr(DeliveryRing, "_needed_from", needed_from, raising=False)
    with expect_failure():
        delivery_ring.test_what_is_still_needed_is_not_written_over()
