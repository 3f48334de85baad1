"""The agents' one call: lease, commit, retry, return, leave. Every branch, on a real server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from redis.exceptions import ResponseError

from parallelrun_core.wire.leasing import MAX_REPORTS, Delivery, Mode, TurnReports
from parallelrun_core.wire.outcome import Status, decode_list, encode
from parallelrun_core.wire.states import JobState
from tests.integration.queue.job_on_redis import JobOnRedis, Session, decided, message, retried, returned
from tests.unit.core.factories import failed

pytestmark = pytest.mark.integration

Report = Callable[[Iterable[Delivery]], TurnReports]

ENDED = [state for state in JobState if state is not JobState.PROCESSING]


def test_a_job_that_redis_does_not_know_is_gone_and_leaves_nothing_behind(job: JobOnRedis) -> None:
    agent = job.agent()
    job.redis.delete(*job.keys.all())
    turn = agent.queue.turn("join", TurnReports(), 5)
    assert turn.state is None
    assert not turn.lost
    assert job.everything() == {}


def test_mini_batches_are_leased_in_order_each_once_with_what_was_published(job: JobOnRedis) -> None:
    job.publish(5)
    first, second = job.agent("a"), job.agent("b")
    one, two, three = first.lease(2), second.lease(2), first.lease(2)
    deliveries = [*one, *two, *three]
    assert [each.mini_batch for each in deliveries] == [0, 1, 2, 3, 4]
    assert [each.message for each in deliveries] == [message(number) for number in range(5)]
    assert {(each.tries, each.lost) for each in deliveries} == {(0, 0)}
    assert not any(each.is_suspect for each in deliveries)
    assert len({each.token for each in deliveries}) == 5
    assert job.leases() == {each.mini_batch: each.token for each in deliveries}
    assert all(each.token.startswith(f"{first.name}/") for each in (*one, *three))
    assert job.ready() == []
    assert job.leader.counts()[1] == 5


def test_a_turn_says_how_many_are_left(job: JobOnRedis) -> None:
    job.publish(5)
    agent = job.agent()
    assert agent.queue.turn("join", TurnReports(), 2).ready == 3
    assert agent.queue.turn("stay", TurnReports(), 0).ready == 3
    assert agent.queue.turn("stay", TurnReports(), 10).ready == 0
    assert agent.queue.turn("stay", TurnReports(), 10).deliveries == ()


def test_any_number_of_mini_batches_can_be_leased_at_once(job: JobOnRedis) -> None:
    """A node with 32 slots and a look-ahead of 256 may ask for as many as 8,192; none may get lost."""
    for _ in range(10):
        job.publish(1000)
    agent = job.agent()
    leased = [each.mini_batch for each in agent.lease(8192)]
    assert leased == list(range(len(leased)))
    assert leased
    assert sorted(job.leases()) == leased
    assert job.ready() == list(range(len(leased), 10_000))


def test_a_commit_becomes_an_outcome_and_frees_everything_else(job: JobOnRedis) -> None:
    job.publish(3)
    agent = job.agent()
    held = agent.lease(3)
    turn = agent.queue.turn("stay", decided(held[:2]), 0)
    assert turn.refused == 0
    assert [(each.mini_batch, each.token) for each in job.outcomes()] == [(0, held[0].token), (1, held[1].token)]
    assert job.messages() == {2}
    assert job.leases() == {2: held[2].token}


def test_a_commit_and_the_next_lease_go_in_one_turn(job: JobOnRedis) -> None:
    job.publish(2)
    agent = job.agent()
    held = agent.lease(1)
    turn = agent.queue.turn("stay", decided(held), 1)
    assert [each.mini_batch for each in turn.deliveries] == [1]


@pytest.mark.parametrize("report", [decided, retried, returned])
def test_the_same_reports_twice_are_refused_the_second_time(job: JobOnRedis, report: Report) -> None:
    job.publish(3)
    agent = job.agent()
    held = agent.lease(3)
    assert agent.queue.turn("stay", report(held), 0).refused == 0
    before = job.everything()
    assert agent.queue.turn("stay", report(held), 0).refused == 3
    assert job.everything() == before


@pytest.mark.parametrize("report", [decided, retried, returned])
def test_a_report_that_comes_twice_in_one_turn_counts_once(job: JobOnRedis, report: Report) -> None:
    job.publish(1)
    agent = job.agent()
    held = agent.lease(1)
    assert agent.queue.turn("stay", report([*held, *held]), 0).refused == 1
    assert len(job.ready()) + len([each for each in job.outcomes() if each.status == "done"]) == 1
    assert job.charged()["tries"].get(0, 0) <= 1


@pytest.mark.parametrize("report", [decided, retried, returned])
def test_an_old_token_is_refused_once_the_mini_batch_went_to_somebody_else(job: JobOnRedis, report: Report) -> None:
    job.publish(1)
    slow, quick = job.agent("slow"), job.agent("quick")
    old = slow.lease(1)
    slow.queue.turn("stay", returned(old), 0)
    new = quick.lease(1)
    assert new[0].token != old[0].token
    assert slow.queue.turn("stay", report(old), 0).refused == 1
    assert job.leases() == {0: new[0].token}
    assert job.outcomes() == []
    assert job.ready() == []


def test_a_late_answer_of_the_first_try_cannot_commit_as_the_second_on_the_same_node(job: JobOnRedis) -> None:
    job.publish(1)
    agent = job.agent()
    first = agent.lease(1)
    second = agent.queue.turn("stay", retried(first), 1).deliveries
    assert second[0].mini_batch == 0
    assert agent.queue.turn("stay", decided(first), 0).refused == 1
    assert agent.queue.turn("stay", decided(second), 0).refused == 0
    assert [each.token for each in job.outcomes() if each.status == "done"] == [second[0].token]


@pytest.mark.parametrize("status", ["failed", "retry"])
@pytest.mark.parametrize("late", [(), (0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_what_is_not_refused_is_told_with_the_seal_of_the_whole(
    job: JobOnRedis, status: Status, late: tuple[int, ...]
) -> None:
    """Records go together, and the leader takes those of them that didn't come too late; whatever is in them."""
    job.publish(3)
    agent = job.agent()
    held = agent.lease(3)
    reports = [
        (each.mini_batch, each.token, encode(failed(message='\n,["a\\n,["], \r\n[1]\n', status=status)))
        for each in held
    ]
    agent.queue.turn("stay", returned(held[place] for place in late), 0)
    both = (
        TurnReports(decided=reports)
        if status == "failed"
        else TurnReports(retries=[(*report, 1) for report in reports])
    )
    assert agent.queue.turn("stay", both, 0).refused == len(late)
    expected = [decode_list(b"[" + record + b"]")[0] for mini_batch, _, record in reports if mini_batch not in late]
    assert job.outcomes() == expected
    told: Any = job.redis.xrange(job.keys.outcomes)
    whole = b"[" + b",".join(record for _, _, record in reports) + b"]"
    assert [fields[b"r"] for _, fields in told] == [whole][: len(expected)], "whole, as it was sealed"


@pytest.mark.parametrize("pair", [(0, 1), (1, 11)])
def test_somebody_elses_token_is_refused_for_another_mini_batch(job: JobOnRedis, pair: tuple[int, int]) -> None:
    job.publish(12)
    agent = job.agent()
    held = agent.lease(12)
    one, other = (held[place] for place in pair)
    mixed = [msgspec.structs.replace(one, token=other.token), msgspec.structs.replace(other, token=one.token)]
    assert agent.queue.turn("stay", decided(mixed), 0).refused == 2
    assert job.outcomes() == []


def test_a_token_for_a_mini_batch_that_nobody_holds_is_refused(job: JobOnRedis) -> None:
    job.publish(1)
    agent = job.agent()
    held = agent.lease(1)
    strange = msgspec.structs.replace(held[0], mini_batch=77, token="")
    assert agent.queue.turn("stay", decided([strange]), 0).refused == 1
    assert job.outcomes() == []


def test_a_retry_charges_a_try_comes_back_first_and_is_told(job: JobOnRedis) -> None:
    job.publish(3)
    agent = job.agent()
    held = agent.lease(2)
    again = agent.queue.turn("stay", retried(held[1:]), 2).deliveries
    assert [(each.mini_batch, each.tries, each.lost) for each in again] == [(1, 1, 0), (2, 0, 0)]
    assert again[0].is_suspect
    assert not again[1].is_suspect
    assert [each.status for each in job.outcomes()] == ["retry"]
    assert again[0].message == message(1)
    third = agent.queue.turn("stay", retried(again[:1]), 1).deliveries
    assert [(each.mini_batch, each.tries) for each in third] == [(1, 2)]


@pytest.mark.parametrize("charged", [1, 2])
def test_a_failed_try_is_charged_what_its_agent_says(job: JobOnRedis, charged: int) -> None:
    job.publish(1)
    agent = job.agent()
    again = agent.queue.turn("stay", retried(agent.lease(1), charged=charged), 1).deliveries
    assert [each.tries for each in again] == [charged]


def test_a_return_charges_nothing_and_keeps_the_order(job: JobOnRedis) -> None:
    job.publish(6)
    agent = job.agent()
    held = agent.lease(4)
    turn = agent.queue.turn("stay", returned(held[1:]), 0)
    assert turn.ready == 5
    assert job.ready() == [1, 2, 3, 4, 5]
    again = agent.lease(3)
    assert [(each.mini_batch, each.tries, each.lost) for each in again] == [(1, 0, 0), (2, 0, 0), (3, 0, 0)]
    assert job.outcomes() == []


def test_a_decision_forgets_the_tries_and_losses_before_it(job: JobOnRedis) -> None:
    job.publish(2)
    agent = job.agent()
    again = agent.queue.turn("stay", retried(agent.lease(1)), 1).deliveries
    job.expire(agent)
    job.leader.reap(max_lost=10, max_lease_ms=1)
    assert job.charged() == {"tries": {0: 1}, "lost": {0: 1}}
    other = job.agent("other")
    last = other.lease(1)
    assert (last[0].mini_batch, last[0].tries, last[0].lost) == (0, 1, 1)
    assert last[0].token != again[0].token
    other.queue.turn("stay", decided(last), 0)
    assert job.charged() == {"tries": {}, "lost": {}}


def test_all_kinds_of_report_go_together(job: JobOnRedis) -> None:
    job.publish(6)
    agent = job.agent()
    held = agent.lease(6)
    reports = TurnReports(decided(held[:2]).decided, retried(held[2:4]).retries, returned(held[4:]).returns)
    assert len(reports) == 6
    assert sorted(reports.tokens()) == sorted(each.token for each in held)
    assert agent.queue.turn("stay", reports, 0).refused == 0
    assert job.leases() == {}
    assert sorted(job.ready()) == [2, 3, 4, 5]
    assert [(each.mini_batch, each.status) for each in job.outcomes()] == [
        (0, "done"), (1, "done"), (2, "retry"), (3, "retry"),
    ]  # fmt: skip


def test_a_full_turn_of_reports_of_every_kind_fits_in_one_call(job: JobOnRedis) -> None:
    for _ in range(3):
        job.publish(MAX_REPORTS)
    agent = job.agent()
    held = [each for _ in range(3) for each in agent.lease(MAX_REPORTS)]
    done, again, back = (held[at : at + MAX_REPORTS] for at in range(0, 3 * MAX_REPORTS, MAX_REPORTS))
    reports, rest = TurnReports(decided(done).decided, retried(again).retries, returned(back).returns).split()
    assert len(rest) == 0
    assert agent.queue.turn("stay", reports, 0).refused == 0
    assert len(job.outcomes()) == 2 * MAX_REPORTS
    assert len(job.ready()) == 2 * MAX_REPORTS
    assert job.leases() == {}


def test_reports_are_split_without_losing_or_repeating_any() -> None:
    reports = TurnReports(returns=[(number, f"s/{number}") for number in range(25)])
    now, rest = reports.split(10)
    later, last = rest.split(10)
    assert [*now.returns, *later.returns, *last.returns] == reports.returns
    assert (len(now), len(later), len(last)) == (10, 10, 5)


# Sessions


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
