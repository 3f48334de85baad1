"""What a node decides for one job, in histories that are seldom found at random (see test_machine_histories.py)."""

from __future__ import annotations

from typing import Any, TypeVar
from unittest.mock import ANY

import msgspec
import pytest

from parallelrun_agent.policy.commands import (
    Abandon,
    Commit,
    Deliver,
    DumpStacks,
    EndWorker,
    Kill,
    NextTurn,
    ReportInitFailure,
    TakeBack,
    WatchDisk,
)
from parallelrun_agent.policy.job_machine import JobMachine
from parallelrun_agent.policy.look_ahead import TURN_S
from parallelrun_agent.policy.outcomes import WorkerAnswer
from parallelrun_agent.policy.worker import NEVER, Exit, KillReason, Worker
from parallelrun_core.wire.leasing import MAX_REPORTS, Delivery, Turn, TurnReports
from parallelrun_core.wire.outcome import Failure
from parallelrun_core.wire.states import JobState
from tests.unit.agent.factories import RUN_S, UNCHARGED, machine
from tests.unit.core.factories import outcome

C = TypeVar("C")
NO_MODEL = Failure("INIT_EXCEPTION", "no model")


def delivery(number: int, *, is_suspect: bool = False) -> Delivery:
    return Delivery(number, f"s/{number}", int(is_suspect), is_suspect, b"")


def starting(node: JobMachine, *, since: float = 99.0, process: str = "p0") -> Worker:
    """A worker in init()."""
    return node.worker_started(process, f"s.{process}", since)


def ready(node: JobMachine, process: str = "p0") -> Worker:
    """A worker that is through init()."""
    worker = starting(node, process=process)
    node.pool.got_ready(worker)
    return worker


def experienced(run_s: float = 0.001, **fields: Any) -> JobMachine:
    """A machine that has joined, and has learned how long run() takes from a worker that has ended since."""
    node = machine(**fields)
    worker = ready(node, "p9")
    for number in range(-9, 0):
        node.observed(JobState.PROCESSING, 1)
        lease(node, 98.0, delivery(number))
        node.answered(worker, WorkerAnswer(number, run_s=run_s), 98.0)
        (commit,) = take(node, Commit)
        node.stored(commit.outcome, b"", 98.0)
    node.exited(worker, Exit(0), 98.0)
    lease(node, 98.0)
    assert not node.deliveries.held
    return node


def at_work(*mini_batches: int, **fields: Any) -> tuple[JobMachine, Worker]:
    """A machine with one worker that has these in flight, since 100 s, and was quick before."""
    node = experienced(**fields)
    worker = ready(node)
    deliveries = tuple(map(delivery, mini_batches))
    turn = NextTurn("stay", TurnReports(), len(deliveries))
    node.answered_turn(turn, Turn(JobState.PROCESSING, deliveries=deliveries), sent_at=100.0, now=100.0)
    assert begun(node) == list(mini_batches)
    return node, worker


def take(of: JobMachine, kind: type[C]) -> list[C]:
    """The commands of this kind; the others are dropped."""
    commands: list[object] = [*of.commands]
    of.commands.clear()
    return [command for command in commands if isinstance(command, kind)]


def begun(of: JobMachine) -> list[int]:
    """The mini-batches that were handed to a worker just now."""
    return [each.delivery.mini_batch for command in take(of, Deliver) for each in command.assignments]


def lease(node: JobMachine, now: float, *deliveries: Delivery, ready: int = 0) -> None:
    """A turn that reports, brings these, and says that there are more."""
    turn = node.next_turn(now)
    assert turn is not None
    assert turn.want >= len(deliveries)
    node.answered_turn(turn, Turn(JobState.PROCESSING, ready=ready, deliveries=deliveries), sent_at=now, now=now)


def wanted(node: JobMachine, now: float, *, waiting: int = 1) -> int:
    """How many more workers it wants while so many mini-batches wait."""
    node.observed(JobState.PROCESSING, waiting)
    return node.wanted_workers(now)


def test_what_a_hanging_worker_begins_after_it_has_answered_at_last_is_not_charged() -> None:
    node, worker = at_work(1, 2)
    node.check_time(100.0 + RUN_S + 0.1)
    assert take(node, DumpStacks)
    node.answered(worker, WorkerAnswer(1, run_s=RUN_S + 0.15), 100.0 + RUN_S + 0.15)
    node.exited(worker, Exit(-9), 100.0 + RUN_S + 0.3)
    assert [command.outcome.status for command in take(node, Commit)] == ["done"]
    assert node.deliveries.reports.returns == [(2, "s/2")]


def test_reading_the_data_has_a_time_of_its_own_and_is_not_the_time_of_run() -> None:
    node, worker = at_work(1, 2, task_overhead_timeout=10 * RUN_S, lease_s=1000)
    for assignment in worker.in_flight.assignments:
        assignment.hand_over(0, 0.0, loads=True)
    node.check_time(100.0 + 9 * RUN_S)
    assert not take(node, DumpStacks)
    worker.in_flight.loaded(1, 20, 9.0 * RUN_S, 100.0 + 9 * RUN_S)
    node.check_time(100.0 + 10 * RUN_S - 0.1)
    assert not take(node, DumpStacks)
    node.answered(worker, WorkerAnswer(1, items=20, rows=20), 100.0 + 10 * RUN_S)
    assert [command.outcome.items for command in take(node, Commit)] == [20]
    node.check_time(100.0 + 20 * RUN_S + 0.1)  # the second one is still being read
    assert take(node, DumpStacks)
    node.exited(worker, Exit(-9), 100.0 + 20 * RUN_S + 0.3)
    (outcome,) = [command.outcome for command in take(node, Commit)]
    assert outcome.failure is not None
    assert outcome.failure.category == "LOAD_TIMEOUT"
    assert outcome.run_s == 0.0
    assert outcome.load_s == pytest.approx(10 * RUN_S + 0.3)


@pytest.mark.parametrize("has_answered", [True, False])
def test_what_a_dead_worker_had_never_read_was_not_tried(*, has_answered: bool) -> None:
    """It may have died of something else. One that never answers anything is charged, or this would never end."""
    node, worker = at_work(1, 2, 3)
    if has_answered:
        node.answered(worker, WorkerAnswer(1, run_s=0.001), 100.0)
        take(node, Commit)
    node.exited(worker, Exit(-11), 101.0, unread=[2, 3] if has_answered else [1, 2, 3])
    assert [command.outcome.mini_batch for command in take(node, Commit)] == ([] if has_answered else [1])
    assert node.deliveries.reports.returns == [(2, "s/2"), (3, "s/3")]


@pytest.mark.parametrize("reason", UNCHARGED)
def test_a_worker_that_is_ended_for_reasons_of_ours_costs_nobody_a_try(reason: KillReason) -> None:
    node, worker = at_work(1, 2)
    if reason == "drained":
        node.drain(0.0, 100.0)
        node.check_time(100.1)
    elif reason == "distrusted":
        node.pool.kill(worker, "distrusted")
    else:
        node.not_stored(outcome(7, part=worker.part_name), 100.0, part_is_lost=True)
    assert take(node, Kill) == [Kill(worker)]
    assert worker.kill_reason == reason
    node.exited(worker, Exit(-9), 101.0)
    assert take(node, Commit) == []
    assert node.deliveries.reports.returns[-2:] == [(1, "s/1"), (2, "s/2")]


@pytest.mark.parametrize("end", [JobState.CANCELED, JobState.FAILED, JobState.FINALIZING])
def test_what_runs_when_the_job_ends_is_not_told_as_a_death(end: JobState) -> None:
    node, worker = at_work(1, 2)
    assert node.turns.due_at() > 100.5
    node.observed(end, 0)
    assert node.turns.due_at() == 0.0, "a look at the jobs has shown that it ended, and a turn says how"
    node.answered_turn(NextTurn("stay", TurnReports(), 0), Turn(end), sent_at=100.5, now=100.5)
    assert node.turns.due_at() > 100.5
    assert take(node, Kill) == [Kill(worker)]
    node.exited(worker, Exit(-9), 101.0)
    assert take(node, Commit) == []
    assert not node.deliveries.reports
    turn = node.next_turn(101.0)
    assert turn is not None
    assert turn.mode == "leave"


def test_an_answer_has_taken_until_it_was_heard_or_as_long_as_its_worker_says() -> None:
    node, worker = at_work(1, 2)
    node.answered(worker, WorkerAnswer(1, run_s=0.25), 100.5)  # the worker may have been at the next one for a while
    node.answered(worker, WorkerAnswer(2, run_s=0.25), 101.0)
    assert [command.outcome.elapsed_s for command in take(node, Commit)] == [0.25, 0.5]


def test_no_answer_has_taken_less_time_than_its_worker_says() -> None:
    node, worker = at_work(1)
    node.answered(worker, WorkerAnswer(1, run_s=0.25), 100.0)
    assert [command.outcome.elapsed_s for command in take(node, Commit)] == [0.25]


def test_a_node_naps_only_while_every_worker_has_enough_to_do() -> None:
    node, worker = at_work(1, 2, 3)
    assert node.nap_s() == pytest.approx(0.001)  # half of the time that what waits may take
    node.answered(worker, WorkerAnswer(1, run_s=0.02), 100.02)
    assert node.nap_s() == pytest.approx(0.0006, rel=0.2)  # what waits may be as quick as any before
    node.answered(worker, WorkerAnswer(2, run_s=0.02), 100.04)
    assert node.nap_s() == 0.0
    node.answered(worker, WorkerAnswer(3, run_s=0.02), 100.06)
    assert node.nap_s() <= 0.0


def two_at_work(run_s: float) -> tuple[JobMachine, Worker, Worker]:
    """A machine whose two workers have one mini-batch each, since 100 s; more wait on the queue."""
    node = experienced(run_s, look_ahead=False)
    workers = [ready(node, process) for process in ("p0", "p1")]
    turn = NextTurn("stay", TurnReports(), 2)
    deliveries = (delivery(0), delivery(1))
    node.answered_turn(turn, Turn(JobState.PROCESSING, ready=9, deliveries=deliveries), sent_at=100.0, now=100.0)
    assert [command.worker for command in take(node, Deliver)] == workers
    return node, workers[0], workers[1]


def test_one_turn_is_for_all_whose_answers_come_sooner_than_it_would() -> None:
    node, first, second = two_at_work(0.00001)
    node.answered(first, WorkerAnswer(0, run_s=0.00001), 100.0001)
    assert node.next_turn(100.0001) is None
    assert node.turns.due_at() == pytest.approx(100.0 + TURN_S)
    node.answered(second, WorkerAnswer(1, run_s=0.00001), 100.0002)
    turn = node.next_turn(100.0002)
    assert turn is not None
    assert turn.want == 2


def test_a_worker_with_room_does_not_wait_for_an_answer_that_is_late() -> None:
    node, first, _ = two_at_work(0.00001)
    node.answered(first, WorkerAnswer(0, run_s=0.00001), 100.0001)
    assert node.next_turn(100.0001) is None
    turn = node.next_turn(100.0 + TURN_S + 0.00001)
    assert turn is not None
    assert turn.want == 1
    assert node.turns.due_at() == NEVER


def test_a_worker_with_room_does_not_wait_for_others_if_runs_take_longer_than_a_turn() -> None:
    node, first, _ = two_at_work(0.001)
    node.answered(first, WorkerAnswer(0, run_s=0.001), 100.0001)
    turn = node.next_turn(100.0001)
    assert turn is not None
    assert turn.want == 1


def test_the_head_alone_is_charged_for_a_death() -> None:
    node, worker = at_work(1, 2, 3)
    node.exited(worker, Exit(-11), 101.0)
    charged = [(each.outcome.mini_batch, each.outcome.status, each.outcome.tries) for each in take(node, Commit)]
    assert charged == [(1, "retry", 1)]
    assert node.deliveries.reports.returns == [(2, "s/2"), (3, "s/3")]


@pytest.mark.parametrize("dies", [False, True])
def test_a_failed_try_is_suspect_if_its_worker_has_died(dies: bool) -> None:
    node, worker = at_work(1, 2, mini_batches_in_flight=2)
    if dies:
        node.exited(worker, Exit(-11), 101.0)
    else:
        node.answered(worker, WorkerAnswer(1, failure=Failure("RUN_TIMEOUT", "canceled")), 101.0)
    for command in take(node, Commit):
        node.stored(command.outcome, b"", 101.0)
    assert [(each[0], each[-1]) for each in node.deliveries.reports.retries] == [(1, dies), (2, dies)][: 1 + dies]


def test_a_death_in_init_is_charged_to_no_mini_batch() -> None:
    node = machine()
    worker = starting(node)
    turn = NextTurn("join", TurnReports(), 2)
    deliveries = (delivery(1), delivery(2))
    node.answered_turn(turn, Turn(JobState.PROCESSING, deliveries=deliveries), sent_at=100.0, now=100.0)
    node.exited(worker, Exit(-9), 101.0)
    assert not [command for command in node.commands if isinstance(command, Commit)]
    assert [command.failure.category for command in take(node, ReportInitFailure)] == ["INIT_DIED"]
    assert node.deliveries.reports.returns == [(1, "s/1"), (2, "s/2")]


def test_who_hangs_in_init_is_asked_where_and_ended_also_when_others_got_through() -> None:
    node = machine()
    hanging, other = starting(node, since=100.0), starting(node, since=110.0, process="p1")
    node.check_time(100.0 + 3 * RUN_S + 30)
    assert not node.commands
    node.check_time(100.0 + 3 * RUN_S + 30.1)
    assert [command.worker for command in take(node, DumpStacks)] == [hanging]
    node.exited(hanging, Exit(-9), 146.0)
    assert [command.failure.category for command in take(node, ReportInitFailure)] == ["INIT_TIMEOUT"]
    node.pool.got_ready(other)
    late = starting(node, since=150.0, process="p2")
    node.check_time(150.0 + 3 * RUN_S + 30.1)
    assert [command.worker for command in take(node, DumpStacks)] == [late]
    assert wanted(node, 200.0, waiting=2) == 1, "who is about to end takes none of what waits, who is idle takes one"


def test_rows_that_the_disk_did_not_take_cost_nobody_a_try() -> None:
    node, worker = at_work(1, 2)
    node.rows_not_taken(worker, 1, 100.01)
    node.disk_failed("it is full", 100.01)
    assert take(node, WatchDisk) == [WatchDisk("it is full")]
    node.taken_back(worker, [2], 100.01)
    assert take(node, Commit) == []
    assert node.deliveries.reports.returns == [(1, "s/1"), (2, "s/2")]
    node.observed(JobState.PROCESSING, 5)
    turn = node.next_turn(100.02)
    assert turn is not None
    assert turn.want == 0
    assert node.wanted_workers(100.02) == 0


def test_a_node_that_is_told_to_stop_returns_what_it_has_not_begun() -> None:
    node, worker = at_work(1, 2, 3)
    node.drain(20.0, 100.01)
    for command in take(node, TakeBack):
        node.taken_back(command.worker, [2, 3], 100.01)
    assert node.deliveries.reports.returns == [(2, "s/2"), (3, "s/3")]
    node.answered(worker, WorkerAnswer(1), 100.02)
    node.caught_up(worker, 100.02)
    assert [command.worker for command in take(node, EndWorker)] == [worker]


def test_the_deadline_counts_from_when_the_turn_was_sent() -> None:
    node, _ = at_work(1)
    node.answered_turn(NextTurn("stay", TurnReports(), 0), Turn(JobState.PROCESSING), sent_at=101.0, now=105.0)
    assert node.turns.lease_left_s(105.0) == 3.0  # a lease of 8 s less a margin of 1 s, since 101.0
    node.check_time(108.0)
    assert [command.why for command in take(node, Abandon)] == ["lease_expired"]
    assert not node.deliveries.held


def test_what_a_turn_could_not_say_is_said_by_the_next_one_before_the_node_leaves() -> None:
    node = machine()
    worker = starting(node)
    deliveries = tuple(map(delivery, range(MAX_REPORTS + 1)))
    join = NextTurn("join", TurnReports(), len(deliveries))  # nobody can take any of them
    node.answered_turn(join, Turn(JobState.PROCESSING, deliveries=deliveries), sent_at=100.0, now=100.0)
    node.drain(1.0, 100.0)
    node.exited(worker, Exit(-9), 100.1)
    modes = []
    while not node.membership.has_left:
        turn = node.next_turn(100.2)
        assert turn is not None
        modes.append((turn.mode, len(turn.reports)))
        node.answered_turn(turn, Turn(JobState.PROCESSING), sent_at=100.2, now=100.2)
    assert modes == [("stay", MAX_REPORTS), ("leave", 1)]


def test_a_slow_head_gives_what_waits_behind_it_to_others() -> None:
    node, worker = at_work(1, 2, 3)
    node.check_time(100.2)
    assert [command.worker for command in take(node, TakeBack)] == [worker]
    node.taken_back(worker, [2, 3], 100.2)
    assert node.deliveries.reports.returns == [(2, "s/2"), (3, "s/3")]
    assert len(worker.in_flight) == 1


def test_a_retry_behind_a_slow_head_goes_to_others_and_is_not_leased_again_meanwhile() -> None:
    node, worker = at_work(1)
    node.observed(JobState.PROCESSING, 1)
    retry = delivery(2, is_suspect=True)
    lease(node, 100.01, retry)
    node.check_time(100.05)
    assert not node.deliveries.reports, "the head may still be quick"
    node.check_time(100.2)
    assert begun(node) == []
    assert node.deliveries.reports.returns == [(2, "s/2")]
    lease(node, 100.3, ready=1)
    assert node.next_turn(100.31) is None
    node.answered(worker, WorkerAnswer(1, run_s=0.3), 100.32)
    node.caught_up(worker, 100.32)
    lease(node, 100.33, msgspec.structs.replace(retry, token="s/3"))
    assert begun(node) == [2]


def test_a_retry_is_begun_soon_however_much_else_is_there() -> None:
    node, worker = at_work(1, 2)
    node.observed(JobState.PROCESSING, 1000)
    lease(node, 100.001, delivery(3, is_suspect=True), delivery(4), delivery(5), ready=1000)
    for number in (1, 2):
        assert begun(node) == []
        node.answered(worker, WorkerAnswer(number, run_s=0.001), 100.001 + 0.001 * number)
        node.caught_up(worker, 100.001 + 0.001 * number)
    assert begun(node) == [3]
    node.answered(worker, WorkerAnswer(3, run_s=0.001), 100.004)
    node.caught_up(worker, 100.004)
    assert begun(node) == [4, 5]


def test_a_job_that_succeeded_lets_its_workers_shut_down_and_asks_who_hangs() -> None:
    node, worker = at_work()
    early, late = starting(node, since=99.9, process="p1"), starting(node, since=1.0, process="p2")
    node.answered_turn(NextTurn("stay", TurnReports(), 0), Turn(JobState.FINALIZING), sent_at=100.0, now=100.0)
    assert list(node.commands) == [EndWorker(worker), Kill(early), DumpStacks(late, ANY)]
    node.commands.clear()
    node.check_time(101.0)
    assert list(node.commands) == [Kill(late)]
    node.check_time(102.1)
    assert list(node.commands)[1:] == [DumpStacks(worker, ANY)]


@pytest.mark.parametrize("began", [True, False])
def test_one_for_whom_two_say_how_its_init_ended_is_not_believed(*, began: bool) -> None:
    node = machine()
    worker = starting(node)
    if began:
        node.pool.got_ready(worker)
    else:
        node.init_failed("p0", NO_MODEL, 100.0, worker)
    with pytest.raises(LookupError):
        node.init_failed("p0", NO_MODEL, 100.0, worker)
    with pytest.raises(LookupError):
        node.pool.got_ready(worker)
    node.commands.clear()
    node.violated_protocol(worker, 100.0)
    assert list(node.commands) == [Kill(worker)]
    node.exited(worker, Exit(-9), 101.0)
    assert wanted(node, 110.0) == 1, "another one is started"
    assert not take(node, ReportInitFailure), "it was told already, or never was"


def test_one_that_garbles_its_answers_in_init_has_failed_there() -> None:
    """Else it would be replaced at once, for ever, and nobody would learn of it."""
    node = machine()
    worker = starting(node)
    node.violated_protocol(worker, 100.0)
    ((process, failure),) = [(command.process, command.failure) for command in take(node, ReportInitFailure)]
    assert (process, failure.category, "can't be trusted" in failure.message) == ("p0", "INIT_DIED", True)
    node.exited(worker, Exit(-9), 100.0)
    assert not take(node, ReportInitFailure), "it was told already"
    assert wanted(node, 100.0) == 0, "there is a pause"
    assert wanted(node, 110.0) == 1


def test_one_that_does_not_get_through_init_has_its_time_for_the_end_and_no_more() -> None:
    node = machine()
    worker = starting(node)
    node.init_failed("p0", NO_MODEL, 100.0, worker)
    node.check_time(101.9)
    assert not take(node, DumpStacks)
    node.check_time(102.1)
    assert take(node, DumpStacks) == [DumpStacks(worker, ANY)]
    node.check_time(103.0)
    assert take(node, Kill) == [Kill(worker)]
    node.exited(worker, Exit(-9), 103.1)
    assert not take(node, ReportInitFailure), "it was told when it said so"


def test_one_that_is_replaced_does_what_it_runs_and_no_more() -> None:
    node, worker = at_work(1, 2)
    node.pool.replace(worker)
    assert list(node.commands) == [TakeBack(worker)]
    node.commands.clear()
    node.taken_back(worker, [2], 100.1)
    assert not node.commands, "it runs"
    assert node.deliveries.reports.returns == [(2, "s/2")], "nobody else is here to take it"
    node.answered(worker, WorkerAnswer(1, run_s=0.1), 100.2)
    node.caught_up(worker, 100.2)
    assert take(node, EndWorker) == [EndWorker(worker)]
    node.exited(worker, Exit(0), 100.3)
    assert wanted(node, 100.3) == 1


def test_one_that_is_replaced_while_it_has_nothing_to_do_ends_at_once() -> None:
    node, worker = at_work()
    node.pool.replace(worker)
    node.taken_back(worker, [], 100.1)
    assert take(node, EndWorker) == [EndWorker(worker)]


def test_who_is_through_init_when_it_is_killed_already_may_say_so() -> None:
    node = machine()
    worker = starting(node)
    node.drain(1.0, 100.0)
    assert take(node, Kill) == [Kill(worker)]
    node.pool.got_ready(worker)
    node.check_time(105.0)
    assert worker.kill_reason == "drained"


@pytest.mark.parametrize("ends", ["run() has failed", "the worker has died"])
def test_what_fails_on_a_node_that_leaves_costs_nobody_a_try(ends: str) -> None:
    """Who ends the node may signal all of its processes, as Slurm does."""
    node, worker = at_work(1)
    node.drain(20.0, 100.0)
    if ends == "run() has failed":
        node.answered(worker, WorkerAnswer(1, failure=Failure("EXITED", "its child was ended")), 100.1)
    else:
        node.exited(worker, Exit(-15), 100.1)
    assert take(node, Commit) == []
    assert node.deliveries.reports.returns == [(1, "s/1")]

    node, worker = at_work(1)
    node.drain(20.0, 100.0)
    node.exited(worker, Exit(-9, oom_killed=True), 100.1)
    assert [command.outcome.status for command in take(node, Commit)] == ["retry"], "nobody ends a node like this"
