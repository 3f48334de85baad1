"""The queue against a model: whatever agents and leader do, each published id is in exactly one place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from parallelrun_core.errors import Fenced
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.wire.leasing import Delivery, TurnReports
from tests.integration.queue.job_on_redis import LONG_MS, JobOnRedis, Session, decided, message, retried, returned

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

MAX_LOST = 2
SLOTS = 3

Report = Literal["decided", "retried", "paused", "died", "returned"]
MAKE: dict[Report, Callable[[list[Delivery]], TurnReports]] = {
    "decided": decided, "retried": retried, "paused": partial(retried, pause_ms=LONG_MS), "returned": returned,
    "died": partial(retried, died=True),
}  # fmt: skip


class Holder:
    """One agent, as the test sees it: its session, what it holds, and every delivery that it ever had."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.joined = False
        self.holds: dict[int, Delivery] = {}
        self.past: list[Delivery] = []


class QueueMachine(RuleBasedStateMachine):
    """Agents join, lease, report right and wrong, crash, come back; the leader publishes, reaps, changes."""

    redis: Redis

    @initialize()
    def begin(self) -> None:
        self.redis.flushall()
        self.job = JobOnRedis(self.redis)
        self.leaders = [self.job.leader]
        self.published = 0
        self.skipped: set[int] = set()
        self.ready: list[int] = []
        self.delayed: set[int] = set()
        self.tries: dict[int, int] = {}
        self.lost: dict[int, int] = {}
        self.decided: dict[int, str] = {}
        self.told = 0
        self.agents = [Holder(self.job.agent(f"node{number}")) for number in range(SLOTS)]

    def _agent(self, number: int) -> Holder:
        return self.agents[number % len(self.agents)]

    # The leader

    @rule(count=st.integers(0, 4), skip=st.integers(0, 3))
    def publish(self, count: int, skip: int) -> None:
        messages = [message(self.published + number) for number in range(count)]
        ids = list(range(self.published, self.published + count))
        if skip < count:
            messages[skip] = b""
            self.skipped.add(ids.pop(skip))
        done = self.leaders[-1].publish(self.published, messages)
        self.published += count
        self.ready += ids
        assert done.next_id == self.published

    @rule(shift=st.sampled_from([-2, -1, 1, 3]))
    def publish_at_the_wrong_place(self, shift: int) -> None:
        done = self.leaders[-1].publish(self.published + shift, [b"never"])
        assert done.next_id == self.published

    @rule()
    def another_leads(self) -> None:
        self.job.redis.delete(self.job.keys.leader)
        queue = LeaderQueue(self.job.redis, self.job.job_id)
        assert queue.acquire(str(len(self.leaders)), ttl_ms=LONG_MS, folder_term=0) == len(self.leaders) + 1
        self.leaders.append(queue)

    @rule(which=st.integers(0, 9))
    def a_former_leader_wakes(self, which: int) -> None:
        former = self.leaders[:-1]
        if not former:
            return
        queue = former[which % len(former)]
        for call in (
            lambda: queue.publish(self.published, [b"never"]),
            lambda: queue.reap(max_lost=0, max_lease_ms=1),
            lambda: queue.renew(str(self.leaders.index(queue)), ttl_ms=LONG_MS),
        ):
            with pytest.raises(Fenced):
                call()

    @rule(numbers=st.sets(st.integers(0, SLOTS - 1), min_size=1))
    def crash_and_reap(self, numbers: set[int]) -> None:
        """These agents fall silent; the leader sees it. They may come back with what they hold."""
        returned_ids, given_up = set(), set()
        sessions = 0
        for number in numbers:
            holder = self._agent(number)
            if not holder.joined:
                continue
            sessions += 1
            self.job.expire(holder.session)
            holder.joined = False
            for mini_batch in holder.holds:
                self.lost[mini_batch] = self.lost.get(mini_batch, 0) + 1
                if self.lost[mini_batch] > MAX_LOST:
                    given_up.add(mini_batch)
                    self.lost.pop(mini_batch)
                    self.tries.pop(mini_batch, None)
                    self.decided[mini_batch] = "given up"
                else:
                    returned_ids.add(mini_batch)
            holder.holds = {}
        reaped = self.leaders[-1].reap(max_lost=MAX_LOST, max_lease_ms=LONG_MS, longest_pause_ms=LONG_MS)
        assert (reaped.sessions, reaped.returned) == (sessions, len(returned_ids))
        assert {each.mini_batch for each in reaped.given_up} == given_up
        self.leaders[-1].confirm_given_up(given_up)
        came_back = self.job.ready()[: len(returned_ids)]
        assert set(came_back) == returned_ids
        self.ready = came_back + self.ready

    @rule()
    def all_pauses_end(self) -> None:
        self.leaders[-1].reap(max_lost=MAX_LOST, max_lease_ms=LONG_MS, longest_pause_ms=0)
        due = self.job.ready()[: len(self.delayed)]
        assert set(due) == self.delayed
        self.ready, self.delayed = due + self.ready, set()

    # The agents

    @rule(number=st.integers(0, SLOTS - 1), want=st.integers(0, 5))
    def lease(self, number: int, want: int) -> None:
        holder = self._agent(number)
        self._turn(holder, TurnReports(), want)

    @rule(number=st.integers(0, SLOTS - 1))
    def start_again(self, number: int) -> None:
        """The agent's process dies and is started again; its old session runs out only later."""
        if not self._agent(number).joined:
            self.agents[number] = Holder(self.job.agent(f"node{number}"))

    @rule(
        number=st.integers(0, SLOTS - 1),
        kind=st.sampled_from(list(MAKE)),
        picks=st.sets(st.integers(0, 9), max_size=3),
        want=st.integers(0, 3),
    )
    def report(self, number: int, kind: Report, picks: set[int], want: int) -> None:
        holder = self._agent(number)
        held = list(holder.holds.values())
        chosen = [held[pick] for pick in sorted(picks) if pick < len(held)]
        self._turn(holder, MAKE[kind](chosen), want)

    @rule(
        number=st.integers(0, SLOTS - 1),
        kind=st.sampled_from(list(MAKE)),
        pick=st.integers(0, 99),
        whose=st.integers(0, SLOTS - 1),
    )
    def report_something_old(self, number: int, kind: Report, pick: int, whose: int) -> None:
        """A report for a delivery that has ended: by its own agent, or by another that got hold of the token."""
        past = self._agent(whose).past
        if past:
            self._turn(self._agent(number), MAKE[kind]([past[pick % len(past)]]), 0)

    @rule(number=st.integers(0, SLOTS - 1), keep=st.sets(st.integers(0, 9)))
    def reassert(self, number: int, keep: set[int]) -> None:
        holder = self._agent(number)
        held = list(holder.holds.values())
        kept = [each for at, each in enumerate(held) if at in keep]
        gone = {each.mini_batch for each in held} - {each.mini_batch for each in kept}
        assert holder.session.queue.reassert([each.token for each in kept]) == len(gone)
        came_back = self.job.ready()[: len(gone)]
        assert set(came_back) == gone
        self.ready = came_back + self.ready
        holder.holds = {each.mini_batch: each for each in kept}

    @rule(number=st.integers(0, SLOTS - 1))
    def leave(self, number: int) -> None:
        """As an agent does it: what it holds goes back first."""
        holder = self._agent(number)
        if holder.joined:
            back = list(holder.holds.values())
            turn = holder.session.queue.turn("leave", returned(back), 3)
            assert turn.deliveries == ()
            assert turn.refused == 0
            self.ready = [each.mini_batch for each in back] + self.ready
            holder.holds = {}
            holder.joined = False

    def _turn(self, holder: Holder, reports: TurnReports, want: int) -> None:
        turn = holder.session.queue.turn("stay" if holder.joined else "join", reports, want)
        holder.joined = True
        assert not turn.lost
        refused = 0
        owners = {each.token: other for other in self.agents for each in other.holds.values()}
        for name, entries in (
            ("decided", reports.decided), ("retried", reports.retries), ("returned", reports.returns),
        ):  # fmt: skip
            accepted = [entry for entry in entries if entry[1] in owners]
            refused += len(entries) - len(accepted)
            for mini_batch, token, *rest in accepted:
                owners[token].holds.pop(mini_batch)
                if name == "decided":
                    assert mini_batch not in self.decided
                    self.decided[mini_batch] = "done"
                    self.tries.pop(mini_batch, None)
                    self.lost.pop(mini_batch, None)
                    self.told += 1
                elif name == "retried":
                    self.tries[mini_batch] = self.tries.get(mini_batch, 0) + 1
                    _, _, pause_ms, died = rest
                    if died:
                        self.lost.setdefault(mini_batch, 0)
                    if pause_ms:
                        self.delayed.add(mini_batch)
                    else:
                        self.ready.insert(0, mini_batch)
                    self.told += 1
            if name == "returned":
                self.ready = [entry[0] for entry in accepted] + self.ready
        assert turn.refused == refused
        assert [each.mini_batch for each in turn.deliveries] == self.ready[:want]
        self.ready = self.ready[want:]
        for each in turn.deliveries:
            assert (each.tries, each.is_suspect) == (self.tries.get(each.mini_batch, 0), each.mini_batch in self.lost)
            assert each.message == message(each.mini_batch)
            holder.holds[each.mini_batch] = each
            holder.past.append(each)

    # What must always hold

    @invariant()
    def redis_is_as_the_model(self) -> None:
        leases = {each.mini_batch: each.token for holder in self.agents for each in holder.holds.values()}
        assert self.job.ready() == self.ready
        assert self.job.leases() == leases
        assert self.job.messages() == {*self.ready, *self.delayed, *leases}
        assert self.leaders[-1].whereabouts()[1] == {*self.ready, *self.delayed}
        assert self.job.charged() == {"tries": self.tries, "lost": self.lost}
        assert self.job.leader.checkpoint() == self.published

    @invariant()
    def each_published_id_is_in_exactly_one_place(self) -> None:
        ready, leased = self.job.ready(), list(self.job.leases())
        places = [*ready, *self.delayed, *leased, *self.decided]
        assert len(places) == len(set(places))
        assert set(places) == set(range(self.published)) - self.skipped

    @invariant()
    def each_is_decided_once_and_the_leader_hears_of_it(self) -> None:
        outcomes = self.job.outcomes()
        final = [each for each in outcomes if each.status != "retry"]
        reported = {number: status for number, status in self.decided.items() if status != "given up"}
        assert len(outcomes) == self.told
        assert len(final) == len(reported)
        assert {each.mini_batch: each.status for each in final} == reported


def test_each_published_id_is_always_in_exactly_one_place(redis: Redis) -> None:
    QueueMachine.redis = redis
    run_state_machine_as_test(
        QueueMachine,
        settings=settings(
            max_examples=100, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
