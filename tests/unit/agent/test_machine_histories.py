"""What a node decides for one job, in whole histories: no delivery is forgotten, wrongly charged, or reported twice."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from parallelrun_agent.policy.commands import (
    Abandon,
    Commit,
    Deliver,
    DumpStacks,
    EndWorker,
    Kill,
    ReportInitFailure,
    StageFiles,
    TakeBack,
    Unstage,
    WatchDisk,
)
from parallelrun_agent.policy.in_flight import SLOW_HEAD_S
from parallelrun_agent.policy.outcomes import WorkerAnswer
from parallelrun_agent.policy.worker import Exit, Worker
from parallelrun_core.wire.outcome import Failure, Outcome, encode
from parallelrun_core.wire.states import JobState
from tests.unit.agent.factories import MAX_TRY, RUN_S, SLOTS, UNCHARGED, machine
from tests.unit.agent.simulated_queue import SimulatedQueue

MINI_BATCHES = 15
FAILURE = Failure("RUN_EXCEPTION", "m")


class Process:
    """A worker's process: it reads one delivery at a time, and answers it or dies."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.unread: list[int] = []
        self.runs: int | None = None
        self.dead = False
        self.killed = False
        self.was_asked_to_end = False

    def read(self) -> bool:
        """Begin the next one, if nothing runs."""
        if self.runs is not None or not self.unread or self.dead:
            return False
        self.runs = self.unread.pop(0)
        return True


class NodeHistory(RuleBasedStateMachine):
    """One node, its workers, its disk and the queue; all but the machine are simulated."""

    @initialize(look_ahead=st.booleans(), stages=st.booleans())
    def begin(self, look_ahead: bool, stages: bool) -> None:
        self.machine = machine(look_ahead=look_ahead, stages=stages)
        self.staging: list[str] = []
        self.on_this_node: set[str] | None = set() if stages else None
        self.now = 100.0
        self.queue = SimulatedQueue(MINI_BATCHES)
        self.redis_is_away = False
        self.head_since: dict[str, float] = {}
        # The node
        self.processes: dict[Worker, Process] = {}
        self.started = 0
        self.committing: list[Outcome] = []
        self.draining = False
        self.turn(0.0, 1)
        for _ in range(2):
            self.a_worker_starts()
            self.init_ends(0, 1)
        self.turn(0.0, 1)

    # What the machine asks for

    def execute(self) -> None:
        while self.machine.commands:
            command = self.machine.commands.popleft()
            match command:
                case StageFiles(assignments):
                    assert self.on_this_node is not None
                    self.staging += [each.delivery.token for each in assignments]
                case Unstage(tokens):
                    assert not set(tokens) & self.machine.deliveries.held.keys(), "its files are still needed"
                    self.staging = [token for token in self.staging if token not in tokens]
                case Deliver(worker, assignments):
                    staged = {each.delivery.token for each in assignments}
                    assert self.on_this_node is None or staged <= self.on_this_node, "its files aren't here"
                    process = self.processes[worker]
                    assert worker.stage == "ready", "it gives something to one that can't have more"
                    assert not self.draining, "it takes something on while it is to stop"
                    assert {each.delivery.token for each in assignments} <= self.machine.deliveries.held.keys()
                    suspects = [each for each in worker.in_flight.assignments if each.delivery.is_suspect]
                    assert not suspects or len(worker.in_flight) == 1, "a suspect has company"
                    process.unread += [each.delivery.mini_batch for each in assignments]
                    self.note_head(worker)
                case Commit(outcome, worker):
                    self.check_charge(outcome, worker)
                    self.committing.append(outcome)
                case TakeBack(worker):
                    process = self.processes[worker]
                    taken, process.unread = process.unread, []
                    self.machine.taken_back(worker, taken, self.now)
                case EndWorker(worker):
                    assert not worker.in_flight
                    assert not self.processes[worker].was_asked_to_end
                    self.processes[worker].was_asked_to_end = True
                case DumpStacks(worker, _):
                    assert worker.stage in ("condemned", "killed")
                case Kill(worker):
                    process = self.processes[worker]
                    assert not process.killed, "it was killed before"
                    process.killed = process.dead = True
                case ReportInitFailure():
                    pass
                case WatchDisk():
                    assert self.machine.membership.disk_is_full
                case Abandon():
                    self.staging.clear()
                    self.queue.lose_session()
                    self.processes.clear()
                    self.committing.clear()

    def has_left(self) -> bool:
        return self.machine.membership.has_left

    def note_head(self, worker: Worker) -> None:
        if worker.in_flight:
            self.head_since.setdefault(worker.in_flight.assignments[0].delivery.token, self.now)

    def check_charge(self, outcome: Outcome, worker: Worker | None) -> None:
        """A failed try is one that was begun, and that we have not ended for reasons of our own."""
        assert self.queue.begun[outcome.token] == 1, "something was charged that was not begun"
        assert outcome.tries == self.queue.deliveries[outcome.token].tries + 1 <= MAX_TRY
        if outcome.failure is not None and worker is not None and outcome.failure.category == "SIGNAL":
            assert worker.kill_reason not in (*UNCHARGED, "ended")
        if outcome.failure is not None and outcome.failure.category == "RUN_TIMEOUT":
            assert self.now - self.head_since[outcome.token] > RUN_S, "another one had taken the time"

    # Time and the queue

    @rule(seconds=st.sampled_from([0.001, 0.03, 0.06, 0.5, 1.9]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.machine.check_time(self.now)
        assert not self.machine.turns.joined or self.now < self.queue.lease_until, "it works on without a lease"
        self.execute()
        heads = [worker.in_flight.running_s(self.now) for worker in self.machine.pool.available()]
        waits = self.machine.deliveries.backlog and self.on_this_node is None
        assert not waits or min(heads) <= SLOW_HEAD_S, "something waits for slow heads alone"
        if not self.redis_is_away:
            self.turn_if_due(0.0, 1)

    @rule(really=st.integers(0, 4))
    def redis_goes_or_comes(self, really: int) -> None:
        self.redis_is_away = really == 0

    @rule(fails=st.booleans())
    def all_goes_on(self, fails: bool) -> None:
        """Files come, everybody runs something and answers, the disk takes it, and the queue hears of it."""
        for _ in range(SLOTS):
            self.files_come(0, "all", 0.01)
        for number in range(SLOTS):
            self.answers(number, 1, fails, True)
        self.a_group_is_committed("stored", 1000)
        self.turn(0.0, 1)

    @rule(delay=st.sampled_from([0.0, 0.0, 0.1, 4.0]), is_lost=st.integers(0, 19))
    def turn(self, delay: float, is_lost: int) -> None:
        """One call of the queue; its answer may be late, or never come."""
        was_processing = self.machine.membership.state is JobState.PROCESSING
        self.machine.observed(None, 0)  # so that one is due, which asks for the state
        assert self.turn_if_due(delay, is_lost) or self.has_left() or not was_processing

    def turn_if_due(self, delay: float, is_lost: int) -> bool:
        """Whether there was something to say, to ask for, or a lease to renew."""
        if self.has_left() or self.machine.membership.state is None:
            return False
        self.machine.observed(JobState.PROCESSING, len(self.queue.waiting))
        turn = self.machine.next_turn(self.now)
        if turn is None:
            return False
        sent_at = self.now
        assert turn.mode != "leave" or not self.processes
        assert turn.want == 0 or not self.draining or self.queue.state is not JobState.PROCESSING
        answer = self.queue.answer(turn, self.now)
        self.now += delay
        if is_lost == 0 and not answer.deliveries:
            return True  # whoever repeats the turn is refused what was accepted
        self.machine.answered_turn(turn, answer, sent_at=sent_at, now=self.now)
        self.execute()
        if answer.lost:
            assert not self.machine.deliveries.held
        return True

    @rule(number=st.integers(0, 9))
    def one_hangs(self, number: int) -> None:
        """Its time is up; it may answer yet, and begin another, before it is killed."""
        process = self.pick(number, ready=True)
        if process is not None:
            self.begin_run(process)
            self.turn(0.0, 1)
            self.time_passes(RUN_S + 0.1)

    @rule()
    def sessions_are_given_up(self) -> None:
        """The leader has waited for long enough."""
        self.queue.give_up_sessions(self.now)

    @precondition(lambda self: self.queue.state is JobState.PROCESSING)
    @rule(to=st.sampled_from([JobState.FINALIZING, JobState.FAILED, JobState.CANCELED]), really=st.integers(0, 9))
    def the_job_ends(self, to: JobState, really: int) -> None:
        if really == 0:
            self.queue.state = to

    @rule(really=st.integers(0, 9))
    def the_node_is_asked_to_stop(self, really: int) -> None:
        if really == 0 and not self.draining:
            self.draining = True
            self.machine.drain(3.0, self.now)
            self.execute()

    # Workers

    @rule()
    def a_worker_starts(self) -> None:
        self.machine.observed(JobState.PROCESSING, len(self.queue.waiting))
        if self.machine.wanted_workers(self.now) > 0:
            assert len(self.processes) < SLOTS
            worker = self.machine.worker_started(f"p{self.started}", f"{self.queue.sessions}.p{self.started}", self.now)
            self.started += 1
            self.processes[worker] = Process(worker)

    def pick(self, number: int, *, ready: bool) -> Process | None:
        living = [each for each in self.processes.values() if each.worker.is_through_init == ready and not each.dead]
        return living[number % len(living)] if living else None

    @rule(number=st.integers(0, 9), well=st.integers(0, 3))
    def init_ends(self, number: int, well: int) -> None:
        process = self.pick(number, ready=False)
        if process is None:
            return
        if well:
            self.machine.pool.got_ready(process.worker)
        else:
            self.machine.init_failed(process.worker.process, FAILURE, self.now, process.worker)
            process.dead = True
        self.machine.caught_up(process.worker, self.now)
        self.execute()

    @rule(number=st.integers(0, 9))
    def run_begins(self, number: int) -> None:
        if (process := self.pick(number, ready=True)) is not None:
            self.begin_run(process)

    def begin_run(self, process: Process) -> None:
        if process.read():
            head = process.worker.in_flight.assignments[0]
            assert head.delivery.mini_batch == process.runs
            self.queue.begun[head.delivery.token] += 1

    @rule(number=st.integers(0, 9), count=st.integers(1, 5), fails=st.booleans(), rows=st.booleans())
    def answers(self, number: int, count: int, fails: bool, rows: bool) -> None:
        process = self.pick(number, ready=True)
        if process is None:
            return
        for _ in range(count):
            self.begin_run(process)
            if process.runs is not None:
                mini_batch, process.runs = process.runs, None
                answer = WorkerAnswer(mini_batch, run_s=0.0005, length=10 * rows, failure=FAILURE if fails else None)
                self.machine.answered(process.worker, answer, self.now)
                self.note_head(process.worker)
        self.machine.caught_up(process.worker, self.now)
        self.execute()

    @rule(number=st.integers(0, 9))
    def the_disk_takes_no_rows(self, number: int) -> None:
        process = self.pick(number, ready=True)
        if process is not None and process.runs is not None:
            mini_batch, process.runs = process.runs, None
            self.machine.rows_not_taken(process.worker, mini_batch, self.now)
            self.note_head(process.worker)
            self.machine.disk_failed("it is full", self.now)
            self.machine.caught_up(process.worker, self.now)
            self.execute()

    @rule(number=st.integers(0, 9))
    def one_is_to_be_replaced(self, number: int) -> None:
        """As one that has gathered too many process ids."""
        available = self.machine.pool.available()
        if available:
            self.machine.pool.replace(available[number % len(available)])
            self.execute()

    @rule(number=st.integers(0, 9))
    def dies(self, number: int) -> None:
        process = self.pick(number, ready=True) or self.pick(number, ready=False)
        if process is not None:
            process.dead = True

    @rule()
    def the_dead_are_buried(self) -> None:
        asked = [each for each in self.processes.values() if each.was_asked_to_end]
        ended = [each for each in asked if not each.unread and each.runs is None]
        for process in [each for each in self.processes.values() if each.dead or each in ended]:
            del self.processes[process.worker]
            # What it was given before it died counts as begun: nobody can tell.
            head = (
                process.worker.in_flight.assignments[0]
                if process.worker.in_flight and process.worker.is_through_init
                else None
            )
            if head is not None and process.runs is None:
                self.queue.begun[head.delivery.token] += 1
            self.machine.exited(process.worker, Exit(-9 if process.dead else 0), self.now)
            self.execute()

    @rule(number=st.integers(0, 9), readable=st.booleans())
    def something_can_not_be_handed_over(self, number: int, readable: bool) -> None:
        """The last in flight: its message, or the disk it has to go over, is no good."""
        process = self.pick(number, ready=True)
        if process is None or not process.unread:
            return
        assignment = process.worker.in_flight.assignments[-1]
        process.unread.pop()
        if readable:
            self.machine.undelivered(process.worker, assignment, self.now)
            self.machine.disk_failed("it is full", self.now)
        else:
            self.queue.begun[assignment.delivery.token] += 1  # charged, as what can't be read by one can't by another
            self.machine.unreadable(process.worker, assignment, FAILURE)
        self.execute()

    # Files that are brought to the node

    @rule(
        number=st.integers(0, 9),
        how=st.sampled_from(["all", "all", "all", "missing", "disk"]),
        after_s=st.sampled_from([0.0, 0.01, 5.0]),
    )
    def files_come(self, number: int, how: str, after_s: float) -> None:
        """In any order, also for deliveries that were given back meanwhile."""
        if not self.staging or self.on_this_node is None:
            return
        token = self.staging.pop(number % len(self.staging))
        if how == "all":
            self.on_this_node.add(token)
            self.machine.staged(token, after_s, None, self.now)
        elif how == "missing":
            self.queue.begun[token] += 1  # charged, as what is missing here is missing everywhere
            self.machine.staged(token, after_s, FAILURE, self.now)
        else:
            self.machine.disk_failed("it is full", self.now)
        self.execute()

    # Disk

    @rule(
        fate=st.sampled_from(["stored", "stored", "stored", "rows missing", "not stored", "lost"]),
        count=st.integers(1, 9),
    )
    def a_group_is_committed(self, fate: str, count: int) -> None:
        group, self.committing = self.committing[:count], self.committing[count:]
        for outcome in group:
            if fate == "stored" or (fate == "rows missing" and not outcome.length):
                self.machine.stored(outcome, encode(outcome), self.now)
            elif fate == "rows missing":
                self.machine.rows_missing(outcome)
            else:
                self.machine.not_stored(outcome, self.now, part_is_lost=fate == "lost")
                self.machine.disk_failed("it is full", self.now)
        self.execute()

    @rule()
    def the_disk_has_room(self) -> None:
        self.machine.disk_has_room()

    # What must always hold

    @invariant()
    def every_delivery_is_in_exactly_one_place(self) -> None:
        if not hasattr(self, "machine"):
            return
        deliveries = self.machine.deliveries
        tokens = deliveries.unassigned()
        for process in self.processes.values():
            tokens += [assignment.delivery.token for assignment in process.worker.in_flight.assignments]
        tokens += [outcome.token for outcome in self.committing]
        tokens += deliveries.reports.tokens()
        assert len(tokens) == len(set(tokens)), "a delivery is in two places"
        assert set(tokens) <= deliveries.held.keys()
        if self.machine.membership.state is JobState.PROCESSING:  # what is left of a job that has ended is nobody's
            assert set(tokens) == deliveries.held.keys(), "a delivery is forgotten"
        assert not set(tokens) & self.queue.lost

    @invariant()
    def in_flight_is_what_the_processes_have(self) -> None:
        if not hasattr(self, "machine"):
            return
        assert set(self.machine.workers) == self.processes.keys()
        for process in self.processes.values():
            inside = [] if process.runs is None else [process.runs]
            in_flight = [assignment.delivery.mini_batch for assignment in process.worker.in_flight.assignments]
            assert in_flight == inside + process.unread

    @invariant()
    def nobody_has_more_tries_than_allowed(self) -> None:
        if hasattr(self, "machine"):
            assert all(tries < MAX_TRY for tries in self.queue.tries.values())

    def teardown(self) -> None:
        """However it went: asked to stop, and with every death and sync that may take, the node leaves."""
        if not hasattr(self, "machine") or self.has_left():
            return
        if not self.draining:
            self.machine.drain(1.0, self.now)
            self.draining = True
            self.execute()
        for _ in range(12):
            self.now += 0.7
            self.machine.check_time(self.now)
            self.execute()
            self.the_dead_are_buried()
            self.a_group_is_committed("stored", 1000)
            self.every_delivery_is_in_exactly_one_place()
            if self.has_left():
                break
            self.turn(0.0, 1)
        assert self.has_left(), "the node doesn't leave"
        if self.queue.state is JobState.PROCESSING:
            accounted_for = self.queue.reported.keys() | self.queue.lost
            assert self.queue.deliveries.keys() == accounted_for, "a delivery ended without a word"


TestNode = NodeHistory.TestCase
TestNode.settings = settings(max_examples=200, stateful_step_count=60, deadline=None)
