"""What an agent says of its workers to those who watch a job."""

from __future__ import annotations

from parallelrun_agent.jobs.at_work import workers_at_work
from parallelrun_agent.policy.concurrent import ConcurrentInFlight
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.worker import Worker
from parallelrun_core.wire.at_work import TryAtWork, WorkerAtWork
from parallelrun_core.wire.leasing import Delivery

NOW, WALL = 100.0, 1_000_000.0


def described(worker: Worker, *, waits_for_data: bool = False) -> WorkerAtWork:
    (only,) = workers_at_work([worker], now=NOW, wall=WALL, waits_for_data=waits_for_data)
    return only


def ready_worker() -> Worker:
    worker = Worker("process000", "part", started=80.0)
    worker.pass_init(90.0)
    return worker


def test_at_work_a_worker_in_init_says_since_when() -> None:
    worker = Worker("process000", "part", started=80.0)
    assert described(worker) == WorkerAtWork("process000", "init", WALL - 20)


def test_at_work_an_idle_worker_says_whether_it_waits_for_data() -> None:
    assert described(ready_worker()).doing == "idle"
    assert described(ready_worker(), waits_for_data=True) == WorkerAtWork("process000", "waiting_for_data", WALL - 10)


def test_at_work_only_the_head_of_what_a_worker_has_is_under_way() -> None:
    worker = ready_worker()
    both = [Assignment(Delivery(each, f"s/{each}", each, False, b""), 3, loads=True) for each in (1, 2)]
    worker.in_flight.push(both, 95.0)
    assert described(worker) == WorkerAtWork("process000", "loading", WALL - 5, [TryAtWork(1, 2, 3, WALL - 5)], 1)
    worker.in_flight.loaded(1, 3, 1.0, 96.0)
    assert described(worker) == WorkerAtWork(
        "process000", "running", WALL - 4, [TryAtWork(1, 2, 3, WALL - 5, WALL - 4)], 1
    )


def test_at_work_of_several_in_flight_those_that_run_are_counted() -> None:
    worker = Worker("process000", "part", 80.0, ConcurrentInFlight(width=100))
    worker.pass_init(90.0)
    worker.in_flight.push([Assignment(Delivery(each, f"s/{each}", 0, False, b"")) for each in range(120)], 95.0)
    shown = described(worker)
    assert shown.in_flight == 100, "the others wait in the worker"
    assert [each.mini_batch for each in shown.tries] == list(range(64))
