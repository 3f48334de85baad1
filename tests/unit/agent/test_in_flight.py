"""What a worker has in flight: only the head runs, so only the head is charged."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from parallelrun_agent.policy.in_flight import SLOW_HEAD_S, Assignment, InFlight
from parallelrun_core.wire.leasing import Delivery


def assignment(mini_batch: int, *, is_suspect: bool = False) -> Assignment:
    return Assignment(Delivery(mini_batch, f"s/{mini_batch}", 0, is_suspect, b""), 1, 0.0)


class InFlightMachine(RuleBasedStateMachine):
    """Compared with a list."""

    def __init__(self) -> None:
        super().__init__()
        self.in_flight = InFlight()
        self.model: list[Assignment] = []
        self.since = 0.0
        self.now = 0.0
        self.next = 0

    @rule(seconds=st.floats(0, 10))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(suspect=st.booleans())
    def push(self, suspect: bool) -> None:
        if self.in_flight.room(4, self.in_flight.head_since) == 0 or (suspect and self.model):
            return
        pushed = assignment(self.next, is_suspect=suspect)
        self.next += 1
        if not self.model:
            self.since = self.now
        self.in_flight.push([pushed], self.now)
        self.model.append(pushed)

    @precondition(lambda self: self.model)
    @rule()
    def the_head_is_answered(self) -> None:
        head = self.model.pop(0)
        assert self.in_flight.answered(head.delivery.mini_batch, self.now) is head
        self.since = self.now

    @rule(other=st.integers(0, 100))
    def something_else_is_answered(self, other: int) -> None:
        if self.model and self.model[0].delivery.mini_batch == other:
            return
        with pytest.raises(LookupError):
            self.in_flight.answered(other, self.now)

    @rule(picks=st.sets(st.integers(1, 9)))
    def some_are_taken_back(self, picks: set[int]) -> None:
        """Never the head: the worker has read that."""
        wanted = [assignment for at, assignment in enumerate(self.model) if at in picks]
        assert self.in_flight.take_back(assignment.delivery.mini_batch for assignment in wanted) == wanted
        self.model = [assignment for assignment in self.model if assignment not in wanted]

    @rule(running=st.booleans())
    def the_worker_dies(self, running: bool) -> None:
        begun, rest = self.in_flight.died(running=running)
        assert [*(assignment for assignment, _ in begun), *rest] == self.model
        assert [since for _, since in begun] == ([self.since] if running and self.model else [])
        self.model = []

    @invariant()
    def it_is_as_long_and_as_old_as_the_model(self) -> None:
        assert len(self.in_flight) == len(self.model)
        assert self.in_flight.running_s(self.now) == (self.now - self.since if self.model else 0.0)

    @invariant()
    def nothing_waits_behind_what_may_kill_its_worker(self) -> None:
        suspects = [assignment for assignment in self.model if assignment.delivery.is_suspect]
        assert not suspects or (len(self.model) == 1 and self.in_flight.room(99, self.in_flight.head_since) == 0)
        if not self.model:
            assert self.in_flight.room(4, self.in_flight.head_since) == 4
        if not suspects:
            assert self.in_flight.room(4, self.in_flight.head_since) == max(0, 4 - len(self.model))


TestInFlight = InFlightMachine.TestCase
TestInFlight.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_suspect_has_nothing_behind_it() -> None:
    in_flight = InFlight()
    in_flight.push([assignment(1, is_suspect=True)], 0.0)
    assert in_flight.room(100, in_flight.head_since) == 0
    in_flight.answered(1, 1.0)
    assert in_flight.room(100, in_flight.head_since) == 100


def test_the_time_of_the_next_one_begins_when_the_one_before_is_answered() -> None:
    in_flight = InFlight()
    in_flight.push([assignment(1)], 10.0)
    in_flight.push([assignment(2)], 11.0)
    assert in_flight.running_s(15.0) == 5.0
    in_flight.answered(1, 16.0)
    assert in_flight.running_s(17.0) == 1.0
    in_flight.answered(2, 18.0)
    assert in_flight.running_s(30.0) == 0.0
    in_flight.push([assignment(3)], 30.0)
    assert in_flight.running_s(31.0) == 1.0


def test_there_is_no_room_behind_a_head_that_is_slow() -> None:
    in_flight = InFlight()
    in_flight.push([assignment(1)], 10.0)
    assert in_flight.room(4, 10.0 + SLOW_HEAD_S - 0.01) == 3
    assert in_flight.room(4, 10.1 + SLOW_HEAD_S) == 0


def test_an_answer_that_is_not_for_the_head_is_not_believed() -> None:
    in_flight = InFlight()
    in_flight.push([assignment(1)], 0.0)
    in_flight.push([assignment(2)], 0.0)
    with pytest.raises(LookupError):
        in_flight.answered(2, 1.0)
    assert len(in_flight) == 2
