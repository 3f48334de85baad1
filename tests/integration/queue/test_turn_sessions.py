"""Sessions and leases in a turn of an agent: how they are renewed, left, reasserted, and which deliveries they hold."""

from __future__ import annotations

import time

import pytest
from redis.exceptions import ResponseError

from parallelrun_core.wire.leasing import Delivery, Mode, TurnReports
from parallelrun_core.wire.states import JobState
from tests.integration.queue.job_on_redis import JobOnRedis, Session, decided, retried, returned
from tests.integration.queue.test_turn import Report

pytestmark = pytest.mark.integration


ENDED = [state for state in JobState if state is not JobState.PROCESSING]


@pytest.mark.parametrize("mode", ["join", "stay", "leave"])
def test_who_works_for_an_earlier_generation_hears_that_it_is_gone(job: JobOnRedis, mode: Mode) -> None:
    """What it would commit could not be decided: the leader takes it for late."""
    job.publish(2)
    agent = job.agent()
    held = agent.lease(1)
    job.force(JobState.FAILED)
    job.reopen()
    job.publish(2)
    before = job.everything()
    turn = agent.queue.turn(mode, decided(held), 1)
    assert (turn.state, turn.deliveries) == (None, ())
    assert job.everything() == before
    assert [each.mini_batch for each in job.agent(generation=1).lease(2)] == [0, 1]


@pytest.mark.parametrize("mode", ["stay", "leave"])
def test_a_session_that_never_joined_or_was_given_up_is_told_so_and_changes_nothing(
    job: JobOnRedis, mode: Mode
) -> None:
    job.publish(2)
    agent, other = job.agent("a"), job.agent("b")
    held = agent.lease(2)
    other.lease(0)
    job.expire(agent)
    job.leader.reap(max_lost=10, max_lease_ms=1)
    before = job.everything()
    turn = agent.queue.turn(mode, decided(held), 2)
    assert turn.lost
    assert turn.deliveries == ()
    assert job.everything() == before


def test_the_lease_is_counted_from_redis_clock(job: JobOnRedis) -> None:
    agent = job.agent(lease_ms=100_000)
    before = job.registry.now()
    agent.lease(0)
    (expires,) = job.expiries()
    assert before * 1000 + 99_000 < expires < job.registry.now() * 1000 + 101_000


def test_turns_renew_the_lease_once_a_small_part_of_it_is_over(job: JobOnRedis) -> None:
    agent = job.agent(lease_ms=10_000)
    agent.lease(0)
    job.expire(agent)
    expired = job.expiries()
    give_up_at = time.monotonic() + 5
    while job.expiries() == expired and time.monotonic() < give_up_at:
        assert not agent.queue.turn("stay", TurnReports(), 0).lost
    assert job.leader.reap(max_lost=0, max_lease_ms=10**9).sessions == 0


def test_a_turn_soon_after_another_does_not_write(job: JobOnRedis) -> None:
    agent = job.agent()
    agent.lease(0)
    before = job.everything()
    agent.queue.turn("stay", TurnReports(), 1)
    assert job.everything() == before


def test_the_turn_after_one_without_an_answer_renews_the_lease(job: JobOnRedis) -> None:
    agent = job.agent()
    agent.lease(0)
    job.redis.set(job.keys.ready, "no list")
    with pytest.raises(ResponseError):
        agent.queue.turn("stay", TurnReports(), 1)
    job.redis.delete(job.keys.ready)
    job.expire(agent)
    agent.queue.turn("stay", TurnReports(), 0)
    assert job.leader.reap(max_lost=0, max_lease_ms=10**9).sessions == 0


def test_who_leaves_is_off_the_list_and_gets_nothing_more(job: JobOnRedis) -> None:
    job.publish(2)
    agent = job.agent()
    held = agent.lease(1)
    assert list(job.leader.sessions()) == [agent.name]
    turn = agent.queue.turn("leave", decided(held), 5)
    assert turn.refused == 0
    assert turn.deliveries == ()
    assert list(job.leader.sessions()) == []
    assert job.ready() == [1]


def test_what_a_leaving_session_still_holds_goes_back(job: JobOnRedis) -> None:
    """Nobody could ever reap it: its session is not on the list any more."""
    job.publish(3)
    agent = job.agent()
    agent.lease(2)
    agent.queue.turn("leave", TurnReports(), 0)
    job.leader.reap(max_lost=10, max_lease_ms=1)
    assert sorted(job.ready()) == [0, 1, 2]
    assert job.leases() == {}


def test_the_leader_is_woken_when_a_session_leaves_a_job_that_is_finalizing(job: JobOnRedis) -> None:
    agent = job.agent()
    agent.lease(0)
    job.force(JobState.FINALIZING)
    agent.queue.turn("leave", TurnReports(), 0)
    entries = job.entries()
    assert len(entries) == 1
    assert entries[0].outcomes == ()


# States and nodes


@pytest.mark.parametrize("state", ENDED)
def test_unless_the_job_is_processing_every_report_is_refused_and_nothing_is_leased(
    job: JobOnRedis, state: JobState
) -> None:
    job.publish(4)
    agent = job.agent()
    held = agent.lease(3)
    job.force(state)
    before = job.everything()
    reports = TurnReports(decided(held[:1]).decided, retried(held[1:2]).retries, returned(held[2:]).returns)
    turn = agent.queue.turn("stay", reports, 5)
    assert turn.state is state
    assert turn.refused == 3
    assert turn.deliveries == ()
    assert job.everything() == before


def test_only_assigned_nodes_are_given_work_and_the_others_keep_their_session(job: JobOnRedis) -> None:
    job.publish(4)
    job.leader.assign(["a"])
    chosen, other = job.agent("a"), job.agent("b")
    assert [each.mini_batch for each in chosen.lease(1)] == [0]
    turn = other.queue.turn("join", TurnReports(), 1)
    assert turn.deliveries == ()
    assert turn.ready == 0
    assert turn.state is JobState.PROCESSING
    assert other.name in job.leader.sessions()
    job.leader.assign(["b"])
    assert chosen.queue.turn("stay", TurnReports(), 1).deliveries == ()
    assert [each.mini_batch for each in other.lease(1)] == [1]
    job.leader.assign([])
    assert [each.mini_batch for each in (*chosen.lease(1), *other.lease(1))] == [2, 3]


def test_a_node_that_is_not_assigned_any_more_may_still_commit_what_it_holds(job: JobOnRedis) -> None:
    job.publish(1)
    agent = job.agent("a")
    held = agent.lease(1)
    job.leader.assign(["b"])
    assert agent.queue.turn("stay", decided(held), 1).refused == 0
    assert [each.mini_batch for each in job.outcomes()] == [0]


def test_an_id_without_a_message_is_not_delivered(job: JobOnRedis) -> None:
    """Decided before Redis lost its tail: the id came back, the message had gone."""
    job.publish(3)
    job.redis.hdel(job.keys.messages, "1")
    agent = job.agent()
    assert [each.mini_batch for each in agent.lease(3)] == [0, 2]
    assert sorted(job.leases()) == [0, 2]


# Saying again what is held


def test_reassert_returns_only_what_is_not_held_uncharged(job: JobOnRedis) -> None:
    job.publish(6)
    agent, other = job.agent("a"), job.agent("b")
    held = agent.lease(4)
    others = other.lease(1)
    assert agent.queue.reassert([held[0].token, held[2].token]) == 2
    assert job.leases() == {0: held[0].token, 2: held[2].token, 4: others[0].token}
    assert sorted(job.ready()) == [1, 3, 5]
    assert job.charged() == {"tries": {}, "lost": {}}
    assert agent.queue.reassert([held[0].token, held[2].token]) == 0


def test_reassert_of_nothing_returns_all_of_this_session_and_of_no_other(job: JobOnRedis) -> None:
    job.publish(4)
    agent, other = job.agent("a"), job.agent("a")
    agent.lease(2)
    others = other.lease(2)
    assert agent.queue.reassert([]) == 2
    assert sorted(job.ready()) == [0, 1]
    assert sorted(job.leases()) == [each.mini_batch for each in others]


def test_reassert_takes_as_many_tokens_as_a_node_may_hold(job: JobOnRedis) -> None:
    job.publish(10)
    agent = job.agent()
    held = agent.lease(10)
    tokens = [f"{agent.name}/old.{number}" for number in range(20_000)]
    assert agent.queue.reassert([*tokens, *(each.token for each in held)]) == 0
    assert len(job.leases()) == 10


def test_a_token_that_redis_forgot_is_refused_and_the_mini_batch_goes_to_the_next(job: JobOnRedis) -> None:
    """Redis lost its tail: the lease is not there, the mini-batch is ready again."""
    job.publish(1)
    agent = job.agent()
    held = agent.lease(1)
    job.redis.hdel(job.keys.leases, "0")
    job.redis.lpush(job.keys.ready, "0")
    turn = agent.queue.turn("stay", decided(held), 1)
    assert turn.refused == 1
    assert [each.mini_batch for each in turn.deliveries] == [0]
    assert turn.deliveries[0].token != held[0].token


# A second delivery of a straggler


def test_of_two_deliveries_the_first_to_commit_decides(job: JobOnRedis) -> None:
    job.publish(1)
    slow, quick = job.agent("slow"), job.agent("quick")
    first = slow.lease(1)
    assert job.leader.speculate([(0, first[0].token)]) == 1
    second = quick.lease(1)
    assert quick.queue.turn("stay", decided(second), 0).refused == 0
    assert slow.queue.turn("stay", decided(first), 0).refused == 1
    assert [each.token for each in job.outcomes()] == [second[0].token]
    assert job.leases() == {}


@pytest.mark.parametrize("way", ["one turn", "one turn, swapped", "two turns", "two sessions"])
@pytest.mark.parametrize("second", [decided, retried, returned])
@pytest.mark.parametrize("first", [decided, retried, returned])
def test_of_two_deliveries_one_is_decided_or_the_mini_batch_is_given_out_anew(
    job: JobOnRedis, first: Report, second: Report, way: str
) -> None:
    job.publish(1)
    agent, other = job.agent("a"), job.agent("b")
    one, two = twins(job, agent, other if way == "two sessions" else agent)
    if way == "two sessions":
        agent.queue.turn("stay", first([one]), 0)
        other.queue.turn("stay", second([two]), 0)
    elif way == "two turns":
        agent.queue.turn("stay", first([one]), 0)
        agent.queue.turn("stay", second([two]), 0)
    else:
        if way == "one turn, swapped":
            one, two = two, one
        former, latter = first([one]), second([two])
        both = TurnReports(
            former.decided + latter.decided, former.retries + latter.retries, former.returns + latter.returns
        )
        agent.queue.turn("stay", both, 0)
    is_decided = decided in (first, second)
    assert [each.status for each in job.outcomes()].count("done") == is_decided
    assert (job.leases(), job.redis.exists(job.keys.twins)) == ({}, 0)
    assert (job.ready(), job.messages()) == (([], set()) if is_decided else ([0], {0}))
    if not is_decided:  # a run() that failed is a try, whichever delivery it was for
        tries = [first, second].count(retried)
        assert job.charged()["tries"].get(0, 0) == len(job.outcomes()) == tries


def test_a_first_delivery_that_its_session_no_longer_holds_is_forgotten(job: JobOnRedis) -> None:
    """Otherwise the mini-batch would be thought to be with it as soon as the second delivery has come to nothing."""
    job.publish(2)
    slow, quick = job.agent("slow"), job.agent("quick")
    first, other = slow.lease(2)
    assert job.leader.speculate([(first.mini_batch, first.token), (other.mini_batch, other.token)]) == 2
    second = quick.lease(2)
    assert slow.queue.reassert([other.token]) == 0
    assert job.redis.hkeys(job.keys.twins) == [b"1"]
    slow.queue.turn("leave", TurnReports(), 0)
    quick.queue.turn("stay", retried(second), 0)
    assert (job.leases(), sorted(job.ready())) == ({}, [0, 1])


def test_a_session_that_leaves_with_both_deliveries_leaves_neither_behind(job: JobOnRedis) -> None:
    job.publish(1)
    agent = job.agent()
    twins(job, agent, agent)
    agent.queue.turn("leave", TurnReports(), 0)
    assert (job.leases(), job.redis.exists(job.keys.twins), job.ready()) == ({}, 0, [0])


def twins(job: JobOnRedis, agent: Session, other: Session) -> list[Delivery]:
    """Both deliveries of a straggler."""
    (first,) = agent.lease(1)
    assert job.leader.speculate([(first.mini_batch, first.token)]) == 1
    return [first, *other.lease(1)]


def test_a_lost_answer_costs_no_mini_batch_once_the_agent_says_what_it_holds(job: JobOnRedis) -> None:
    job.publish(3)
    agent = job.agent()
    agent.lease(2)  # Redis has leased them, and the agent doesn't know
    agent.queue.reassert([])
    assert sorted(each.mini_batch for each in agent.lease(3)) == [0, 1, 2]
