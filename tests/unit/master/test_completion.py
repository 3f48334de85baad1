"""Histories of a job through listings, deaths of leaders and a forgetful Redis: decided, published and ended once."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from parallelrun_core.failure import JobFailure
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.outcome import Failure, Outcome
from parallelrun_core.phases import InitFailure
from parallelrun_core.progress import Progress
from parallelrun_core.spec import JobSpec
from parallelrun_core.states import JobState
from parallelrun_core.store.outcome_stream import StreamEntry
from parallelrun_master.ledger import Ledger
from parallelrun_master.policy.completion import Completion
from parallelrun_master.policy.error_groups import ErrorGroups
from parallelrun_master.policy.window import MAX_OUTSTANDING, MAX_OUTSTANDING_BYTES, Window
from tests.unit.core.factories import failed, outcome
from tests.unit.master.factories import ledger

ITEMS = 2
MAX_FAILED_ITEMS = 5


def spec(**fields: Any) -> JobSpec:
    return JobSpec.parse({"entry_script": "e.py", "inputs": "/in", **fields})


class Redis:
    """The part of it that a leader sees: messages, outcomes, a checkpoint. What it forgets must be in the log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ready: list[int] = []
        self.checkpoint = 0
        self.entries: list[StreamEntry] = []
        self.told = 0
        self.committed: set[int] = set()

    def commit(self, of: Outcome) -> None:
        self.ready.remove(of.mini_batch)
        if of.status == "retry":
            self.ready.append(of.mini_batch)
        else:
            self.committed.add(of.mini_batch)
        self.told += 1
        self.entries.append(StreamEntry(b"%d-0" % self.told, outcomes=(of,)))

    def read_entries(self, after: bytes, *, block_ms: int | None) -> list[StreamEntry]:
        return [entry for entry in self.entries if int(entry.entry_id[:-2]) > int(after[:-2])]

    def forget(self, up_to: bytes) -> None:
        kept = [entry for entry in self.entries if int(entry.entry_id[:-2]) > int(up_to[:-2])]
        gone = [each for entry in self.entries if entry not in kept for each in entry.outcomes]
        logged = {each.mini_batch for each in read_decisions(self.folder)}
        assert {each.mini_batch for each in gone if each.status != "retry"} <= logged, "it forgets what is not durable"
        self.entries = kept


class JobHistory(RuleBasedStateMachine):
    """Leaders of one job, one after the other, and all that comes in."""

    ledger: Ledger

    @initialize(total=st.integers(0, 12), tolerant=st.booleans())
    def begin(self, total: int, tolerant: bool) -> None:
        self.home = tempfile.TemporaryDirectory()
        self.folder = Path(self.home.name)
        self.redis = Redis(self.folder)
        self.spec = spec(error_threshold=-1 if tolerant else MAX_FAILED_ITEMS)
        self.total = total
        self.listed = 0
        self.listing_done = False
        self.published: Counter[int] = Counter()
        self.forgetful = 0
        self.truth: dict[int, str] = {}
        self.ends: list[JobState] = []
        self.term = 0
        self.now = 0.0
        self.former: list[Ledger] = []
        self.another_leads()

    @rule()
    def another_leads(self) -> None:
        """The one before is killed, or only paused: what it has not synced is not there for its heir."""
        if self.term:
            self.former.append(self.ledger)
        self.term += 1
        self.ledger = ledger(self.folder, self.redis, self.term)
        self.truth = {each.mini_batch: each.status for each in read_decisions(self.folder)}
        self.completion = Completion(self.spec, self.ledger.progress, self.ledger.errors, self.now)
        self.completion.scheduled(self.listed, self.listed * ITEMS, all_of_them=self.listing_done)
        self.window = Window()
        self.window.rewind(self.redis.checkpoint, len(self.redis.ready))

    @rule(mini_batch=st.integers(0, 11))
    def a_former_leader_wakes(self, mini_batch: int) -> None:
        """It doesn't know yet that its term is over, and writes what it believes; Redis refuses the rest."""
        if self.former:
            self.former[-1]._log.add([failed(mini_batch, items=ITEMS)])
            self.former[-1]._log.sync()

    @rule(count=st.integers(0, 5), closes=st.booleans())
    def list_some(self, count: int, closes: bool) -> None:
        if not self.listing_done:
            self.listed = min(self.total, self.listed + count)
            self.listing_done = closes and self.listed == self.total
        self.completion.scheduled(self.listed, self.listed * ITEMS, all_of_them=self.listing_done)

    @rule(answer_is_lost=st.booleans())
    def publish(self, answer_is_lost: bool) -> None:
        count = self.window.room(self.listed)
        assert count <= self.listed - self.window.next_id
        if not count:
            return
        first = self.window.next_id
        if first == self.redis.checkpoint:
            for mini_batch in range(first, first + count):
                if mini_batch not in self.ledger.decided:
                    assert mini_batch not in self.redis.ready, "it is there twice"
                    self.published[mini_batch] += 1
                    if mini_batch not in self.redis.committed:
                        self.redis.ready.append(mini_batch)
            self.redis.checkpoint = first + count
        if answer_is_lost:
            self.window.rewind(self.redis.checkpoint, len(self.redis.ready))
        elif self.window.published(
            [b"m"] * count, next_id=self.redis.checkpoint, outstanding=len(self.redis.ready)
        ):  # fmt: skip
            self.completion.published(self.window.next_id, self.now)
        else:
            self.window.rewind(self.redis.checkpoint, len(self.redis.ready))

    @rule(pick=st.integers(0, 99), status=st.sampled_from(["done", "done", "done", "failed", "retry"]))
    def an_agent_commits(self, pick: int, status: str) -> None:
        if self.redis.ready and not self.ends:
            mini_batch = self.redis.ready[pick % len(self.redis.ready)]
            make = outcome if status == "done" else failed
            self.redis.commit(make(mini_batch, status=status, items=ITEMS, rows=ITEMS * (status == "done")))

    @rule()
    def redis_forgets_the_last_moment(self) -> None:
        """Messages that were taken come back; the checkpoint goes back with what was published last."""
        if self.redis.checkpoint:
            self.forgetful += 1
            last = self.redis.checkpoint - 1
            self.redis.checkpoint = last
            self.redis.ready = [each for each in self.redis.ready if each != last]
            self.redis.committed.discard(last)
            self.ledger.start_over()
            self.window.rewind(self.redis.checkpoint, len(self.redis.ready))

    @rule(at_once=st.booleans(), seconds=st.sampled_from([0.001, 0.1]))
    def enter(self, at_once: bool, seconds: float) -> None:
        self.now += seconds
        found = [each for entry in self.ledger.read(block_ms=None) for each in entry.outcomes]
        before = {mini_batch: status for mini_batch, status in self.truth.items() if mini_batch in self.ledger.decided}
        accepted, _ = self.ledger.record(found)
        assert len({each.mini_batch for each in accepted}) == len(accepted)
        assert not before.keys() & {each.mini_batch for each in accepted}, "it is decided twice"
        for each in accepted:
            self.truth[each.mini_batch] = each.status
        self.window.decided(len(accepted))
        if found:
            self.completion.recorded(self.now)
        self.ledger.sync_and_trim(self.now, at_once=at_once)

    @precondition(lambda self: not self.ends)
    @rule()
    def look(self) -> None:
        self.completion.refresh(self.now, nodes=1, running=0, lost=0)
        end = self.completion.end()
        if end is None:
            return
        self.ledger.sync_and_trim(self.now, at_once=True)
        self.ends.append(end.state)
        failed_items = ITEMS * sum(status == "failed" for status in self.truth.values())
        if 0 <= self.spec.error_threshold < failed_items:
            assert end.failure is not None
            assert end.failure.code == "THRESHOLD_CROSSED"
            return
        assert self.listing_done, "it ends before all is listed"
        assert self.truth.keys() == set(range(self.total)), "it ends before all is decided"
        reason = end.failure.code if end.failure is not None else ""
        if not self.total:
            assert reason == "EMPTY_INPUT"
        elif "done" not in self.truth.values():
            assert reason == "NO_ROWS"
        else:
            assert end == (JobState.FINALIZING, None)

    @invariant()
    def the_log_has_one_decision_for_each(self) -> None:
        if not hasattr(self, "folder"):
            return
        logged = {each.mini_batch: each.status for each in read_decisions(self.folder)}
        assert len(logged) == sum(1 for _ in read_decisions(self.folder))
        assert logged.items() <= self.truth.items()
        progress = self.ledger.progress
        assert progress.decided == self.ledger.decided.count == len(self.truth)
        assert progress.items_done + progress.items_failed == ITEMS * len(self.truth)

    @invariant()
    def nothing_is_published_twice_that_was_not_forgotten(self) -> None:
        if hasattr(self, "folder"):
            assert sum(count - 1 for count in self.published.values()) <= self.forgetful

    def teardown(self) -> None:
        """However it went, the job comes to an end, and to one only."""
        if not hasattr(self, "home"):
            return
        for _ in range(4):
            if not self.ends:
                self.list_some(self.total, True)
                self.publish(False)
                while self.redis.ready:
                    self.an_agent_commits(0, "done")
                self.enter(True, 0.1)
                self.look()
        assert len(self.ends) == 1
        for each in (*self.former, self.ledger):
            each.close()
        self.the_log_has_one_decision_for_each()
        self.home.cleanup()


TestJob = JobHistory.TestCase
TestJob.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)


# Single steps


def completion(progress: Progress, **fields: Any) -> Completion:
    return Completion(spec(**fields), progress, ErrorGroups(), 0.0)


@pytest.mark.parametrize("progress, has_run", [
    (Progress(), False), (Progress(done=2, resumed=2), False),
    (Progress(done=1), True), (Progress(failed=1), True), (Progress(retried=1), True),
    (Progress(done=3, resumed=2), True),
])  # fmt: skip
def test_a_worker_that_hangs_in_init_fails_no_job_that_an_earlier_leader_saw_run(
    progress: Progress, has_run: bool
) -> None:
    found = completion(progress)
    found.init_failed(InitFailure("n", "process000", Failure("INIT_TIMEOUT", "too long")), 2, 1.0)
    assert (found.end() is None) is has_run


def test_a_worker_that_hangs_in_init_fails_no_job_that_another_one_works_for() -> None:
    found = completion(Progress())
    found.got_through_init()
    found.init_failed(InitFailure("n", "process001", Failure("INIT_TIMEOUT", "too long")), 2, 1.0)
    assert found.end() is None


def test_the_first_reason_to_fail_stays() -> None:
    found = completion(Progress())
    assert found.end() is None
    first = JobFailure(code="INPUTS_CHANGED", summary="first")
    found.fail(None)
    found.fail(first)
    found.fail(JobFailure(code="INPUT_UNREADABLE", summary="second"))
    assert found.end() == (JobState.FAILED, first)
    assert found.end() == (JobState.FAILED, first)


def test_a_job_whose_workers_never_get_ready_fails_with_what_they_said() -> None:
    found = completion(Progress())
    while found.end() is None:
        found.init_failed(InitFailure("node", "process000", Failure("INIT_EXCEPTION", "no model")), slots=2, now=1.0)
    end = found.end()
    assert end is not None
    assert end.failure is not None
    assert end.failure.code == "INIT_FAILED"
    assert "no model" in end.failure.first_cause


def test_no_more_runs_than_is_left() -> None:
    """Agents tell what they hold a moment later than what they have done."""
    progress = Progress(scheduled=8, listing_done=True, done=3)
    completion(progress).refresh(1.0, nodes=1, running=9, lost=0)
    assert progress.running == 5


def test_time_that_redis_was_away_is_no_stall() -> None:
    found = completion(Progress(), first_task_creation_timeout=10)
    found.moved(9.0)
    found.refresh(18.0, nodes=1, running=0, lost=2)
    assert found.end() is None
    found.refresh(20.0, nodes=1, running=0, lost=0)
    end = found.end()
    assert end is not None
    assert end.failure is not None
    assert end.failure.code == "NO_PROGRESS"


@pytest.mark.parametrize("size", [1, 60_000])
def test_the_window_is_bounded_in_number_and_in_bytes(size: int) -> None:
    window = Window()
    while count := window.room(10**9):
        window.published([bytes(size)] * count, next_id=window.next_id + count, outstanding=window.outstanding + count)
    assert window.outstanding <= MAX_OUTSTANDING
    # The first call goes out before the size of a message is known.
    assert window.outstanding * size <= MAX_OUTSTANDING_BYTES + 1000 * size
    window.refresh(window.outstanding, window.outstanding)  # what agents hold makes room: there may be many agents
    assert window.room(window.next_id + 7) == 7
    window.leased = 0
    window.decided(window.outstanding)
    assert window.room(window.next_id + 7) == 7


def test_a_window_that_redis_sees_elsewhere_is_to_be_rewound() -> None:
    window = Window()
    assert not window.published([b"m"], next_id=5, outstanding=3)
    window.rewind(5, 3)
    assert (window.next_id, window.outstanding) == (5, 3)


@pytest.mark.parametrize("scheduled, empty, code", [(0, 0, "EMPTY_INPUT"), (3, 3, "EMPTY_INPUT"), (3, 2, "NO_ROWS")])
def test_a_job_without_a_row_fails(scheduled: int, empty: int, code: str) -> None:
    found = completion(Progress(done=scheduled, empty=empty))
    found.scheduled(scheduled, scheduled, all_of_them=True)
    end = found.end()
    assert end is not None
    assert end.failure is not None
    assert end.failure.code == code
    assert code != "EMPTY_INPUT" or end.failure.summary == "There is nothing to process in /in: no file, or no row."
    none_wanted = completion(Progress(done=3), output_action="summary_only")
    none_wanted.scheduled(3, 3, all_of_them=True)
    assert none_wanted.end() == (JobState.FINALIZING, None)


def test_a_job_of_which_too_much_failed_is_never_finalized() -> None:
    found = completion(Progress(done=1, failed=2, rows=1, items_failed=2), error_threshold=1)
    found.scheduled(3, 3, all_of_them=True)
    end = found.end()
    assert end is not None
    assert end.state is JobState.FAILED


@pytest.mark.parametrize("running", [0, 1])
def test_init_failures_in_a_row_end_a_job_only_while_nobody_works(running: int) -> None:
    """One bad node fails as often as it likes while all the good ones are in long mini-batches."""
    progress = Progress(scheduled=10)
    completion = Completion(spec(), progress, ErrorGroups(), 0.0)
    died = InitFailure("bad", "process000", Failure("INIT_DIED", "The worker ended in init(), code 1."))
    for number in range(100):
        completion.refresh(0.1 * number, nodes=2, running=running, lost=0)
        completion.init_failed(died, 4, 0.1 * number)
    end = completion.end()
    assert (end is None) == bool(running)
