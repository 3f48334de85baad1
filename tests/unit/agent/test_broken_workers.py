"""When a worker in which nothing succeeds any more is replaced, and who is charged for it."""

from __future__ import annotations

from parallelrun_agent.policy.broken_workers import BrokenWorkers
from parallelrun_agent.policy.commands import Commit, TakeBack
from parallelrun_agent.policy.outcomes import WorkerAnswer
from parallelrun_agent.policy.worker import Worker
from parallelrun_core.wire.outcome import Failure
from tests.unit.agent.test_machine import at_work, take

GIVEN_UP = Failure("WORKER_BROKEN", "WorkerBroken: the engine is dead")
FAILED = Failure("RUN_EXCEPTION", "ValueError")


def test_broken_worker_that_its_script_gives_up_is_replaced_and_nobody_charged() -> None:
    node, worker = at_work(1)
    node.answered(worker, WorkerAnswer(1, failure=GIVEN_UP), 101.0)
    assert worker.stage == "replaced"
    assert take(node, TakeBack)[0].worker is worker
    assert node.deliveries.reports.returns == [(1, "s/1")]
    assert not take(node, Commit)


def test_broken_workers_without_end_charge_their_mini_batches() -> None:
    broken = BrokenWorkers(limit=2)
    assert [broken.gave_up() for _ in range(8)] == [True] * 6 + [False] * 2
    broken.succeeded(Worker("p", "", 0.0))
    assert broken.gave_up()


def test_broken_worker_is_known_by_its_neighbours_that_succeed() -> None:
    broken, bad, good = BrokenWorkers(limit=2), Worker("bad", "", 0.0), Worker("good", "", 0.0)
    for _ in range(20):
        assert not broken.failed(bad), "nobody has succeeded meanwhile: the data may be bad"
    for _ in range(8):
        broken.succeeded(good)
    assert broken.failed(bad)


def test_broken_worker_is_none_that_succeeds_now_and_then() -> None:
    broken, worker, good = BrokenWorkers(limit=2), Worker("p", "", 0.0), Worker("good", "", 0.0)
    for _ in range(50):
        for _ in range(7):
            broken.succeeded(good)
            assert not broken.failed(worker)
        broken.succeeded(worker)


def test_broken_workers_are_replaced_less_and_less_often_where_that_does_not_help() -> None:
    broken, good, replaced = BrokenWorkers(limit=2), Worker("good", "", 0.0), 0
    worker = Worker("p", "", 0.0)
    for _ in range(1000):
        broken.succeeded(good)
        if broken.failed(worker):
            replaced, worker = replaced + 1, Worker("p", "", 0.0)
    assert replaced == 6


def test_broken_workers_do_not_change_how_failures_are_charged() -> None:
    node, worker = at_work(1)
    node.answered(worker, WorkerAnswer(1, failure=FAILED), 101.0)
    assert worker.stage == "ready"
    assert take(node, Commit)[0].outcome.tries == 1
