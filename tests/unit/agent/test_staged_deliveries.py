"""How long a worker waited for what was being staged: Load Seconds, which are not charged to run()."""

from __future__ import annotations

from collections import deque

import pytest

from parallelrun_agent.policy.commands import Command
from parallelrun_agent.policy.staged_deliveries import StagedDeliveries
from parallelrun_agent.policy.worker import Worker
from parallelrun_core.leasing import Delivery


@pytest.fixture
def idle() -> Worker:
    return Worker("process000", "s.process000", started=990.0)


def waited_s(worker: Worker, *, staged_at: float, elapsed_s: float) -> float:
    deliveries = StagedDeliveries(deque[Command]())
    one = Delivery(0, "s/0", 0, 0, b"")
    deliveries.receive([one])
    assignment = deliveries.staged(one.token, elapsed_s, staged_at)
    assert assignment is not None
    deliveries.backlog.append(assignment)
    [given] = deliveries.hand_out([worker], 1, staged_at + 0.1)
    return given.assignments[0].waited_s


def test_a_new_worker_has_waited_since_the_staging_began(idle: Worker) -> None:
    assert waited_s(idle, staged_at=1000.0, elapsed_s=2.0) == 2.0


def test_a_worker_that_became_idle_later_has_waited_since_then(idle: Worker) -> None:
    idle.in_flight.head_since = 999.5
    assert waited_s(idle, staged_at=1000.0, elapsed_s=2.0) == 0.5


def test_a_worker_that_became_idle_when_all_was_there_has_not_waited(idle: Worker) -> None:
    idle.in_flight.head_since = 1000.05
    assert waited_s(idle, staged_at=1000.0, elapsed_s=2.0) == 0.0
