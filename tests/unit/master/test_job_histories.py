"""Histories of a job through listings, deaths of leaders and a forgetful Redis: decided, published and ended once."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from parallelrun_core.errors import Fenced
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.store.outcome_stream import StreamEntry
from parallelrun_core.store.seals import Seals
from parallelrun_core.wire.outcome import Outcome
from parallelrun_core.wire.states import JobState
from parallelrun_master.ledger.ledger import Ledger
from parallelrun_master.policy.completion import Completion
from parallelrun_master.policy.window import Window
from tests.unit.core.factories import failed, outcome
from tests.unit.master.factories import ledger, spec

ITEMS = 2
MAX_FAILED_ITEMS = 5


class Redis:
    """The part of it that a leader sees: messages, outcomes, a checkpoint. What it forgets must be in the log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ready: list[int] = []
        self.checkpoint = 0
        self.entries: list[StreamEntry] = []
        self.count = 0
        self.term = 0
        self.committed: set[int] = set()

    def commit(self, of: Outcome) -> None:
        self.ready.remove(of.mini_batch)
        if of.status == "retry":
            self.ready.append(of.mini_batch)
        else:
            self.committed.add(of.mini_batch)
        self.count += 1
        self.entries.append(StreamEntry(b"%d-0" % self.count, outcomes=(of,)))

    def read_entries(self, after: bytes, seals: Seals, *, block_ms: int | None) -> list[StreamEntry]:
        return [entry for entry in self.entries if int(entry.entry_id[:-2]) > int(after[:-2])]

    def forget(self, up_to: bytes, *, term: int) -> None:
        if term != self.term:
            raise Fenced("another term has begun")
        rest = [entry for entry in self.entries if int(entry.entry_id[:-2]) > int(up_to[:-2])]
        gone = [each for entry in self.entries if entry not in rest for each in entry.outcomes]
        logged = {each.mini_batch for each in read_decisions(self.folder)}
        assert {each.mini_batch for each in gone if each.status != "retry"} <= logged, "it forgets what is not durable"
        self.entries = rest


class RedisOfOneTerm:
    """What one leader sees of it."""

    def __init__(self, redis: Redis, term: int) -> None:
        self.read_entries = redis.read_entries
        self.forget = partial(redis.forget, term=term)


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
        self.redis.term = self.term
        self.ledger = ledger(self.folder, RedisOfOneTerm(self.redis, self.term), self.term)
        self.truth = {each.mini_batch: each.status for each in read_decisions(self.folder)}
        self.completion = Completion(self.spec, self.ledger.progress, self.ledger.errors, self.now)
        self.completion.scheduled(self.listed, self.listed * ITEMS, all_of_them=self.listing_done)
        self.window = Window()
        self.window.rewind(self.redis.checkpoint, len(self.redis.ready))

    @rule(mini_batch=st.integers(0, 11))
    def a_former_leader_wakes(self, mini_batch: int) -> None:
        """It doesn't know yet that its term is over, and writes what it believes; Redis refuses the rest."""
        if self.former:
            self.former[-1].record([failed(mini_batch, items=ITEMS)])
            with suppress(Fenced):
                self.former[-1].sync_and_trim(self.now, at_once=True)

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
    def record(self, at_once: bool, seconds: float) -> None:
        self.now += seconds
        outcomes = [each for entry in self.ledger.read(block_ms=None) for each in entry.outcomes]
        before = {mini_batch: status for mini_batch, status in self.truth.items() if mini_batch in self.ledger.decided}
        accepted, _ = self.ledger.record(outcomes)
        assert len({each.mini_batch for each in accepted}) == len(accepted)
        assert not before.keys() & {each.mini_batch for each in accepted}, "it is decided twice"
        for each in accepted:
            self.truth[each.mini_batch] = each.status
        self.window.decided(len(accepted))
        if outcomes:
            self.completion.recorded(self.now)
        self.ledger.sync_and_trim(self.now, at_once=at_once)

    @precondition(lambda self: not self.ends)
    @rule()
    def check(self) -> None:
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
                self.record(True, 0.1)
                self.check()
        assert len(self.ends) == 1
        for each in (*self.former, self.ledger):
            each.close()
        self.the_log_has_one_decision_for_each()
        self.home.cleanup()


TestJob = JobHistory.TestCase
TestJob.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
