"""How a leader ends the sessions of lost nodes, and what becomes of the mini-batches that they held."""

from __future__ import annotations

import pytest

from parallelrun_core.errors import Fenced
from parallelrun_core.store.leader_queue import Reaped
from tests.integration.queue.job_on_redis import LONG_MS, JobOnRedis, decided, retried, successor

pytestmark = pytest.mark.integration


def test_mini_batches_of_a_lost_session_go_to_others_at_the_infrastructures_expense(job: JobOnRedis) -> None:
    job.publish(5)
    lost, alive = job.agent("lost"), job.agent("alive")
    lost.lease(2)
    kept = alive.lease(1)
    job.expire(lost)
    reaped = job.leader.reap(max_lost=10, max_lease_ms=LONG_MS)
    assert (reaped.sessions, reaped.returned, reaped.given_up) == (1, 2, ())
    assert list(job.leader.sessions()) == [alive.name]
    assert job.leases() == {2: kept[0].token}
    assert sorted(job.ready()) == [0, 1, 3, 4]
    again = alive.lease(2)
    assert sorted((each.mini_batch, each.tries, each.is_suspect) for each in again) == [(0, 0, True), (1, 0, True)]
    assert job.charged() == {"tries": {}, "lost": {0: 1, 1: 1}}


def test_a_commit_after_the_reaping_is_refused(job: JobOnRedis) -> None:
    job.publish(1)
    paused, other = job.agent("paused"), job.agent("other")
    late = paused.lease(1)
    job.expire(paused)
    job.leader.reap(max_lost=10, max_lease_ms=LONG_MS)
    assert paused.queue.turn("stay", decided(late), 0).lost
    # Even a session that begins anew under its old name can't.
    assert paused.queue.turn("join", decided(late), 0).refused == 1
    new = other.lease(1)
    assert paused.queue.turn("stay", decided(late), 0).refused == 1
    assert other.queue.turn("stay", decided(new), 0).refused == 0
    assert [each.token for each in job.outcomes()] == [new[0].token]


def test_nothing_is_reaped_while_leases_hold(job: JobOnRedis) -> None:
    job.publish(1)
    job.agent().lease(1)
    before = job.everything()
    assert job.leader.reap(max_lost=0, max_lease_ms=LONG_MS).sessions == 0
    assert job.everything() == before


def test_a_session_that_holds_nothing_is_reaped_too(job: JobOnRedis) -> None:
    agent = job.agent()
    agent.lease(0)
    job.expire(agent)
    reaped = job.leader.reap(max_lost=10, max_lease_ms=LONG_MS)
    assert (reaped.sessions, reaped.returned, reaped.given_up) == (1, 0, ())


def test_sessions_of_which_one_name_begins_the_other_are_told_apart(job: JobOnRedis) -> None:
    job.publish(2)
    short, long = job.agent("n"), job.agent("n")
    short.lease(1)
    job.redis.hset(job.keys.leases, "1", f"{short.name}-1/x.")
    job.expire(short)
    assert job.leader.reap(max_lost=10, max_lease_ms=LONG_MS).returned == 1
    assert list(job.leases()) == [1]
    assert long.queue.reassert([]) == 0


def test_of_what_was_lost_too_often_leaders_are_told_until_one_has_recorded_it(job: JobOnRedis) -> None:
    job.publish(2)
    for _ in range(2):
        agent = job.agent()
        assert agent.lease(1)[0].mini_batch == 0
        job.expire(agent)
        assert job.leader.reap(max_lost=2, max_lease_ms=LONG_MS).returned == 1
    agent = job.agent()
    (delivery,) = agent.lease(1)
    assert delivery.is_suspect
    assert job.charged()["lost"] == {0: 2}
    job.expire(agent)
    reaped = job.leader.reap(max_lost=2, max_lease_ms=LONG_MS)
    assert (reaped.sessions, reaped.returned) == (1, 0)
    (given_up,) = reaped.given_up
    assert (given_up.mini_batch, given_up.status, given_up.items, given_up.tries) == (0, "failed", 2, 0)
    assert given_up.failure is not None
    assert given_up.failure.category == "NODE_LOST"
    assert given_up.failed_items == 2
    assert job.ready() == [1]
    assert job.charged() == {"tries": {}, "lost": {}}
    new = successor(job)
    assert new.reap(max_lost=2, max_lease_ms=LONG_MS) == Reaped(0, 0, (given_up,))
    with pytest.raises(Fenced):
        job.leader.confirm_given_up([0])
    new.confirm_given_up([0])
    assert new.reap(max_lost=2, max_lease_ms=LONG_MS) == Reaped(0, 0)
    assert job.messages() == {1}
    assert job.outcomes() == [], "what comes through the stream could be forged"
    assert agent.queue.turn("join", decided([delivery]), 0).refused == 1


def test_what_is_given_up_says_how_many_tries_it_had(job: JobOnRedis) -> None:
    job.publish(1)
    agent = job.agent()
    agent.queue.turn("stay", retried(agent.lease(1)), 1)
    job.expire(agent)
    assert [each.tries for each in job.leader.reap(max_lost=0, max_lease_ms=LONG_MS).given_up] == [1]


def test_who_was_replaced_cannot_reap(job: JobOnRedis) -> None:
    job.publish(1)
    agent = job.agent()
    agent.lease(1)
    job.expire(agent)
    successor(job)
    with pytest.raises(Fenced):
        job.leader.reap(max_lost=10, max_lease_ms=LONG_MS)
    assert sorted(job.leases()) == [0]


def test_a_lease_far_in_the_future_is_cut_to_a_whole_one(job: JobOnRedis) -> None:
    """Redis' clock was set back: without this, a dead session would live for as long as the clock jumped."""
    agent = job.agent()
    agent.lease(0)
    future = job.registry.now() * 1000 + 86_400_000
    job.redis.zadd(job.keys.sessions, {agent.name: future})
    assert job.leader.reap(max_lost=10, max_lease_ms=20_000).sessions == 0
    (expires,) = job.expiries()
    now_ms = job.registry.now() * 1000
    assert now_ms < expires <= now_ms + 20_000


def test_a_lease_within_two_lengths_is_left_alone(job: JobOnRedis) -> None:
    agent = job.agent()
    agent.lease(0)
    expires = job.registry.now() * 1000 + 30_000
    job.redis.zadd(job.keys.sessions, {agent.name: expires})
    job.leader.reap(max_lost=10, max_lease_ms=20_000)
    assert job.expiries() == [expires]


def test_what_pauses_after_a_failed_try_is_ready_when_that_is_over_and_not_before(job: JobOnRedis) -> None:
    job.publish(3)
    agent = job.agent()
    agent.queue.turn("stay", retried(agent.lease(3), pause_ms=LONG_MS), 0)
    job.leader.reap(max_lost=10, max_lease_ms=LONG_MS, longest_pause_ms=LONG_MS)
    assert agent.lease(3) == ()
    now_ms = job.registry.now() * 1000
    job.redis.zadd(job.keys.delayed, {"0": now_ms - 1, "1": now_ms - 2, "2": now_ms + 86_400_000})
    job.leader.reap(max_lost=10, max_lease_ms=LONG_MS, longest_pause_ms=86_400_000 + LONG_MS)
    assert [(each.mini_batch, each.tries) for each in agent.lease(3)] == [(1, 1), (0, 1)]
    job.leader.reap(max_lost=10, max_lease_ms=LONG_MS, longest_pause_ms=LONG_MS)
    assert [each.mini_batch for each in agent.lease(3)] == [2], "the clock was set back"


def test_many_mini_batches_of_a_large_node_come_back_at_once(job: JobOnRedis) -> None:
    for _ in range(9):
        job.publish(1000)
    agent = job.agent()
    for _ in range(9):
        agent.lease(1000)
    job.expire(agent)
    assert job.leader.reap(max_lost=10, max_lease_ms=LONG_MS).returned == 9000
    assert sorted(job.ready()) == list(range(9000))
