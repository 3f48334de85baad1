"""The leader's calls: terms, publishing, reaping, taking note. Every branch, on a real server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from parallelrun_core.errors import Fenced
from parallelrun_core.outcome import Failure
from parallelrun_core.states import JobState
from parallelrun_core.store.agent_queue import Reports
from parallelrun_core.store.leader_queue import MAX_MESSAGES, LeaderQueue
from parallelrun_core.store.news import (
    Concatenated,
    InitFailure,
    Phase,
    report_concatenated,
    report_init_failure,
    report_phases,
    report_preparing,
)
from tests.integration.queue.desk import LONG_MS, Desk, decided, message, retried

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

PATIENCE_S = 5.0


def successor(desk: Desk, name: str = "successor", folder_term: int = 0) -> LeaderQueue:
    """Another process leads from now on, as after the first one's key has run out."""
    desk.redis.delete(desk.keys.leader)
    queue = LeaderQueue(desk.redis, desk.job_id)
    assert queue.acquire(name, ttl_ms=LONG_MS, folder_term=folder_term)
    return queue


# Terms


def test_while_one_leads_no_other_does(desk: Desk) -> None:
    assert LeaderQueue(desk.redis, desk.job_id).acquire("other", ttl_ms=LONG_MS, folder_term=9) == 0
    assert LeaderQueue(desk.redis, desk.job_id).acquire("leader", ttl_ms=LONG_MS, folder_term=9) == 0
    assert desk.registry.status(desk.job_id).term == 1


def test_each_turn_has_a_term_of_its_own(desk: Desk) -> None:
    assert [successor(desk, f"leader {number}").term for number in range(3)] == [2, 3, 4]


def test_the_term_is_above_all_terms_of_the_folder_even_when_redis_forgot(desk: Desk) -> None:
    assert successor(desk, folder_term=7).term == 8
    desk.redis.hdel(desk.keys.job, "term")
    assert successor(desk, folder_term=8).term == 9
    assert successor(desk, folder_term=3).term == 10


def test_the_leaders_key_runs_out_by_itself(desk: Desk) -> None:
    assert 0 < int(desk.redis.pttl(desk.keys.leader)) <= LONG_MS
    desk.leader.renew("leader", ttl_ms=2 * LONG_MS)
    assert int(desk.redis.pttl(desk.keys.leader)) > LONG_MS


def test_a_leader_that_is_not_heard_of_any_more_can_be_replaced(redis: Redis) -> None:
    desk = Desk(redis)
    desk.leader.renew("leader", ttl_ms=50)
    deadline = time.monotonic() + PATIENCE_S
    while not (term := LeaderQueue(redis, desk.job_id).acquire("next", ttl_ms=LONG_MS, folder_term=0)):
        assert time.monotonic() < deadline, "nobody can lead"
        time.sleep(0.01)
    assert term == 2


def test_a_key_that_ran_out_may_be_taken_back_while_no_other_turn_has_begun(desk: Desk) -> None:
    desk.redis.delete(desk.keys.leader)
    desk.leader.renew("leader", ttl_ms=LONG_MS)
    assert desk.registry.has_leader(desk.job_id)


def test_who_was_replaced_cannot_renew_nor_resign_for_its_successor(desk: Desk) -> None:
    new = successor(desk)
    with pytest.raises(Fenced):
        desk.leader.renew("leader", ttl_ms=LONG_MS)
    desk.leader.resign("leader")
    assert desk.registry.has_leader(desk.job_id)
    new.renew("successor", ttl_ms=LONG_MS)


def test_who_was_replaced_cannot_renew_after_its_successor_has_gone_either(desk: Desk) -> None:
    successor(desk).resign("successor")
    with pytest.raises(Fenced):
        desk.leader.renew("leader", ttl_ms=LONG_MS)
    assert not desk.registry.has_leader(desk.job_id)


def test_the_token_is_compared_too(desk: Desk) -> None:
    with pytest.raises(Fenced):
        desk.leader.renew("somebody else", ttl_ms=LONG_MS)
    desk.leader.resign("somebody else")
    assert desk.registry.has_leader(desk.job_id)


def test_who_resigns_lets_the_next_one_lead_at_once(desk: Desk) -> None:
    desk.leader.resign("leader")
    assert not desk.registry.has_leader(desk.job_id)
    assert LeaderQueue(desk.redis, desk.job_id).acquire("next", ttl_ms=LONG_MS, folder_term=0) == 2


@pytest.mark.parametrize("to", [JobState.FAILED, JobState.FINALIZING])
def test_who_was_replaced_cannot_move_the_job_on(desk: Desk, to: JobState) -> None:
    term = desk.leader.term
    new = successor(desk)
    before = desk.everything()
    with pytest.raises(Fenced):
        desk.registry.move(desk.job_id, to, term=term)
    assert desk.everything() == before
    desk.registry.move(desk.job_id, to, term=new.term)
    assert desk.registry.state(desk.job_id) is to


# Publishing


def test_publishing_moves_the_checkpoint_with_the_messages(desk: Desk) -> None:
    assert desk.leader.checkpoint() == 0
    published = desk.publish(3)
    assert (published.next_id, published.outstanding, published.ready) == (3, 3, 3)
    assert desk.leader.checkpoint() == 3
    published = desk.publish(2)
    assert (published.next_id, published.outstanding, published.ready) == (5, 5, 5)
    assert desk.ready() == [0, 1, 2, 3, 4]


def test_publishing_at_another_id_than_the_checkpoint_does_nothing_but_say_it(desk: Desk) -> None:
    desk.publish(3)
    before = desk.everything()
    for first in (0, 2, 4):
        assert desk.leader.publish(first, [message(first)] * 2).next_id == 3
    assert desk.everything() == before


def test_the_same_call_twice_publishes_once(desk: Desk) -> None:
    messages = [message(0), message(1)]
    desk.leader.publish(0, messages)
    before = desk.everything()
    desk.leader.publish(0, messages)
    assert desk.everything() == before


def test_what_is_decided_already_is_skipped_and_counted(desk: Desk) -> None:
    published = desk.leader.publish(0, [message(0), b"", message(2), b""])
    assert (published.next_id, published.outstanding) == (4, 2)
    assert desk.ready() == [0, 2]
    assert desk.leader.publish(4, [b"", b""]).next_id == 6
    assert desk.leader.checkpoint() == 6
    assert desk.messages() == {0, 2}


def test_publishing_nothing_looks_and_changes_nothing(desk: Desk) -> None:
    desk.publish(4)
    desk.agent().lease(1)
    before = desk.everything()
    published = desk.leader.publish(4, [])
    assert (published.next_id, published.outstanding, published.ready) == (4, 4, 3)
    assert desk.everything() == before


def test_a_full_call_fits(desk: Desk) -> None:
    assert desk.publish(MAX_MESSAGES).ready == MAX_MESSAGES


def test_who_was_replaced_cannot_publish(desk: Desk) -> None:
    new = successor(desk)
    before = desk.everything()
    with pytest.raises(Fenced):
        desk.publish(1)
    assert desk.everything() == before
    assert new.publish(0, [message(0)]).next_id == 1


@pytest.mark.parametrize("state", [state for state in JobState if state is not JobState.PROCESSING])
def test_nothing_is_published_unless_the_job_is_processing(desk: Desk, state: JobState) -> None:
    desk.force(state)
    before = desk.everything()
    assert desk.publish(1).next_id == 0
    assert desk.everything() == before


def test_nothing_is_published_for_a_job_that_redis_has_forgotten(desk: Desk) -> None:
    desk.force(None)
    with pytest.raises(Fenced):
        desk.publish(1)
    assert desk.ready() == []


# Reaping


def test_the_mini_batches_of_a_lost_session_go_to_others_at_the_infrastructures_expense(desk: Desk) -> None:
    desk.publish(5)
    lost, alive = desk.agent("lost"), desk.agent("alive")
    lost.lease(2)
    kept = alive.lease(1)
    desk.expire(lost)
    reaped = desk.leader.reap(max_lost=10, max_lease_ms=LONG_MS)
    assert (reaped.sessions, reaped.returned, reaped.given_up) == (1, 2, 0)
    assert list(desk.leader.sessions()) == [alive.name]
    assert desk.leases() == {2: kept[0].token}
    assert sorted(desk.ready()) == [0, 1, 3, 4]
    again = alive.lease(2)
    assert sorted((each.mini_batch, each.tries, each.lost) for each in again) == [(0, 0, 1), (1, 0, 1)]
    assert all(each.is_suspect for each in again)


def test_a_commit_after_the_reaping_is_refused(desk: Desk) -> None:
    desk.publish(1)
    paused, other = desk.agent("paused"), desk.agent("other")
    late = paused.lease(1)
    desk.expire(paused)
    desk.leader.reap(max_lost=10, max_lease_ms=LONG_MS)
    assert paused.queue.turn("stay", decided(late), 0).lost
    # Even a session that begins anew under its old name can't.
    assert paused.queue.turn("join", decided(late), 0).refused == 1
    new = other.lease(1)
    assert paused.queue.turn("stay", decided(late), 0).refused == 1
    assert other.queue.turn("stay", decided(new), 0).refused == 0
    assert [each.token for each in desk.outcomes()] == [new[0].token]


def test_nothing_is_reaped_while_leases_hold(desk: Desk) -> None:
    desk.publish(1)
    desk.agent().lease(1)
    before = desk.everything()
    assert desk.leader.reap(max_lost=0, max_lease_ms=LONG_MS).sessions == 0
    assert desk.everything() == before


def test_a_session_that_holds_nothing_is_reaped_too(desk: Desk) -> None:
    agent = desk.agent()
    agent.lease(0)
    desk.expire(agent)
    reaped = desk.leader.reap(max_lost=10, max_lease_ms=LONG_MS)
    assert (reaped.sessions, reaped.returned, reaped.given_up) == (1, 0, 0)


def test_sessions_of_which_one_name_begins_the_other_are_told_apart(desk: Desk) -> None:
    desk.publish(2)
    short, long = desk.agent("n"), desk.agent("n")
    short.lease(1)
    desk.redis.hset(desk.keys.leases, "1", f"{short.name}-1/x.1")
    desk.expire(short)
    assert desk.leader.reap(max_lost=10, max_lease_ms=LONG_MS).returned == 1
    assert list(desk.leases()) == [1]
    assert long.queue.reassert([]) == 0


def test_what_was_lost_too_often_is_given_up_as_an_entry_for_the_leader(desk: Desk) -> None:
    desk.publish(2)
    for _ in range(2):
        agent = desk.agent()
        assert agent.lease(1)[0].mini_batch == 0
        desk.expire(agent)
        assert desk.leader.reap(max_lost=2, max_lease_ms=LONG_MS).returned == 1
    agent = desk.agent()
    (delivery,) = agent.lease(1)
    assert delivery.lost == 2
    desk.expire(agent)
    reaped = desk.leader.reap(max_lost=2, max_lease_ms=LONG_MS)
    assert (reaped.returned, reaped.given_up) == (0, 1)
    (given_up,) = desk.outcomes()
    assert (given_up.mini_batch, given_up.status, given_up.items, given_up.tries) == (0, "failed", 2, 0)
    assert given_up.failure is not None
    assert given_up.failure.category == "NODE_LOST"
    assert given_up.failed_items == 2
    assert desk.ready() == [1]
    assert desk.messages() == {1}
    assert desk.charged() == {"tries": {}, "lost": {}}
    assert agent.queue.turn("join", decided([delivery]), 0).refused == 1


def test_what_is_given_up_says_how_many_tries_it_had(desk: Desk) -> None:
    desk.publish(1)
    agent = desk.agent()
    agent.queue.turn("stay", retried(agent.lease(1)), 1)
    desk.expire(agent)
    assert desk.leader.reap(max_lost=0, max_lease_ms=LONG_MS).given_up == 1
    assert [each.tries for each in desk.outcomes() if each.status == "failed"] == [1]


def test_who_was_replaced_cannot_reap(desk: Desk) -> None:
    desk.publish(1)
    agent = desk.agent()
    agent.lease(1)
    desk.expire(agent)
    successor(desk)
    with pytest.raises(Fenced):
        desk.leader.reap(max_lost=10, max_lease_ms=LONG_MS)
    assert sorted(desk.leases()) == [0]


def test_a_lease_far_in_the_future_is_cut_to_a_whole_one(desk: Desk) -> None:
    """Redis' clock was set back: without this, a dead session would live for as long as the clock jumped."""
    agent = desk.agent()
    agent.lease(0)
    future = desk.registry.now() * 1000 + 86_400_000
    desk.redis.zadd(desk.keys.sessions, {agent.name: future})
    assert desk.leader.reap(max_lost=10, max_lease_ms=20_000).sessions == 0
    (expires,) = desk.expiries()
    now_ms = desk.registry.now() * 1000
    assert now_ms < expires <= now_ms + 20_000


def test_a_lease_within_two_lengths_is_left_alone(desk: Desk) -> None:
    agent = desk.agent()
    agent.lease(0)
    expires = desk.registry.now() * 1000 + 30_000
    desk.redis.zadd(desk.keys.sessions, {agent.name: expires})
    desk.leader.reap(max_lost=10, max_lease_ms=20_000)
    assert desk.expiries() == [expires]


def test_many_mini_batches_of_a_large_node_come_back_at_once(desk: Desk) -> None:
    for _ in range(9):
        desk.publish(1000)
    agent = desk.agent()
    for _ in range(9):
        agent.lease(1000)
    desk.expire(agent)
    assert desk.leader.reap(max_lost=10, max_lease_ms=LONG_MS).returned == 9000
    assert sorted(desk.ready()) == list(range(9000))


# Taking note


def test_news_come_in_order_and_from_where_the_reader_was(desk: Desk) -> None:
    desk.publish(3)
    agent = desk.agent()
    held = agent.lease(3)
    agent.queue.turn("stay", decided(held[:2]), 0)
    failure = InitFailure("node", "process000", Failure("INIT_EXCEPTION", "no model", "Traceback"))
    report_init_failure(desk.redis, desk.job_id, failure)
    report_concatenated(desk.redis, desk.job_id, Concatenated("/out", 5, "abc"))
    report_preparing(desk.redis, desk.job_id, "node")
    *news, preparing = desk.leader.news(b"0-0", block_ms=None)
    assert [[each.mini_batch for each in entry.outcomes] for entry in news] == [[0, 1], [], []]
    assert [entry.preparing for entry in (*news, preparing)] == ["", "", "", "node"]
    assert news[1].init_failure == failure
    assert news[2].concatenated == Concatenated("/out", 5, "abc")
    assert [entry.entry_id for entry in desk.leader.news(news[0].entry_id, block_ms=None)] == [
        news[1].entry_id, news[2].entry_id, preparing.entry_id,
    ]  # fmt: skip
    assert desk.leader.news(preparing.entry_id, block_ms=1) == []


def test_who_comes_too_late_leaves_nothing_of_a_job_that_was_retired(desk: Desk) -> None:
    desk.registry.move(desk.job_id, JobState.CANCELED)
    desk.registry.retire(desk.job_id, term=desk.leader.term)
    before = desk.everything()
    failure = Failure("INIT_EXCEPTION", "no model", "Traceback")
    report_init_failure(desk.redis, desk.job_id, InitFailure("node", "process000", failure))
    report_phases(desk.redis, desk.job_id, [Phase("node", "process000", "SHUTDOWN", 1.0, 1.0)])
    report_preparing(desk.redis, desk.job_id, "node")
    report_concatenated(desk.redis, desk.job_id, Concatenated("/out", 5, "abc"))
    assert desk.everything() == before
    assert desk.redis.exists(desk.keys.outcomes) == 0


def test_what_is_forgotten_is_gone_and_nothing_else_is(desk: Desk) -> None:
    desk.publish(4)
    agent = desk.agent()
    for delivery in agent.lease(4):
        agent.queue.turn("stay", decided([delivery]), 0)
    news = desk.leader.news(b"0-0", block_ms=None)
    desk.leader.forget(news[1].entry_id)
    assert [each.mini_batch for each in desk.outcomes()] == [2, 3]
    desk.leader.forget(news[1].entry_id)
    assert [each.mini_batch for each in desk.outcomes()] == [2, 3]


def test_who_was_replaced_cannot_make_redis_forget_what_its_successor_has_not_read(desk: Desk) -> None:
    """It has entered the outcome in a file that nobody reads: trimmed, the mini-batch would be lost for ever."""
    desk.publish(1)
    agent = desk.agent()
    new = successor(desk)
    agent.queue.turn("stay", decided(agent.lease(1)), 0)
    (seen,) = desk.leader.news(b"0-0", block_ms=None)
    with pytest.raises(Fenced):
        desk.leader.forget(seen.entry_id)
    assert [each.mini_batch for entry in new.news(b"0-0", block_ms=None) for each in entry.outcomes] == [0]


def test_who_was_replaced_cannot_retire_the_job(desk: Desk) -> None:
    term = desk.leader.term
    new = successor(desk)
    new.publish(0, [message(0), message(1)])
    before = desk.everything()
    with pytest.raises(Fenced):
        desk.registry.retire(desk.job_id, term=term)
    assert desk.everything() == before
    assert desk.registry.active_jobs() == [desk.job_id]


def test_who_led_a_job_before_it_was_reopened_leads_it_no_more(desk: Desk) -> None:
    """It knows nothing of the generation that has begun, though nobody else may have led yet."""
    desk.registry.move(desk.job_id, JobState.FAILED, term=desk.leader.term)
    desk.registry.reopen(desk.job_id, submitted=1.0)
    with pytest.raises(Fenced):
        desk.leader.renew("leader", ttl_ms=LONG_MS)
    with pytest.raises(Fenced):
        desk.registry.move(desk.job_id, JobState.FAILED, term=desk.leader.term)
    with pytest.raises(Fenced):
        desk.registry.retire(desk.job_id, term=desk.leader.term)
    assert desk.registry.state(desk.job_id) is JobState.QUEUED
    assert LeaderQueue(desk.redis, desk.job_id).acquire("next", ttl_ms=LONG_MS, folder_term=1) == 3


def test_who_was_replaced_cannot_choose_the_nodes(desk: Desk) -> None:
    new = successor(desk)
    new.assign(["a"])
    with pytest.raises(Fenced):
        desk.leader.assign(["b"])
    assert desk.redis.smembers(desk.keys.nodes) == {b"a"}


def test_a_reader_is_woken_by_a_change_of_state(desk: Desk) -> None:
    desk.registry.move(desk.job_id, JobState.CANCELED)
    (entry,) = desk.leader.news(b"0-0", block_ms=None)
    assert (entry.outcomes, entry.init_failure, entry.concatenated) == ((), None, None)


def test_setbacks_are_counted_across_leaders_each_kind_anew_when_more_is_durable(desk: Desk) -> None:
    assert desk.leader.count_setback("crashes") == 1
    assert successor(desk).count_setback("crashes") == 2
    assert desk.leader.count_setback("hangs") == 1
    assert desk.leader.count_setback("crashes", mark=5) == 1
    assert desk.leader.count_setback("hangs", mark=5) == 1
    assert [desk.leader.count_setback("crashes", mark=mark) for mark in (5, 0)] == [2, 3]
    desk.registry.move(desk.job_id, JobState.CANCELED)
    desk.reopen_retired()
    assert desk.leader.count_setback("crashes") == 1


def test_after_a_resignation_with_a_pause_nobody_leads_for_so_long(desk: Desk) -> None:
    desk.leader.resign("leader", pause_ms=30_000)
    assert desk.registry.has_leader(desk.job_id)
    assert desk.leader.acquire("next", ttl_ms=1000, folder_term=0) == 0
    desk.redis.pexpire(desk.keys.leader, 1)
    until = time.monotonic() + PATIENCE_S
    while not (term := LeaderQueue(desk.redis, desk.job_id).acquire("next", ttl_ms=1000, folder_term=0)):
        assert time.monotonic() < until
    assert term == 2


def test_a_pause_of_one_who_was_replaced_is_of_no_account(desk: Desk) -> None:
    successor(desk)
    before = desk.redis.get(desk.keys.leader)
    desk.leader.resign("leader", pause_ms=30_000)
    assert desk.redis.get(desk.keys.leader) == before


def test_what_is_shown_can_be_read_and_followed(desk: Desk) -> None:
    desk.leader.show({"progress": b'{"done": 7}', "started": "5.5"}, event=("progress", b'{"done":7}'))
    status = desk.registry.status(desk.job_id)
    assert status.progress.done == 7
    assert status.started == 5.5
    assert status.version == 1
    ((_, event, data),) = desk.registry.events(desk.job_id, "0", block_ms=None)
    assert (event, data) == ("progress", '{"done":7}')


def test_a_turn_of_an_agent_does_not_need_a_leader(desk: Desk) -> None:
    """Failover must not stop the work: agents lease and commit while nobody leads."""
    desk.publish(1)
    desk.redis.delete(desk.keys.leader)
    agent = desk.agent()
    held = agent.queue.turn("join", Reports(), 1).deliveries
    assert agent.queue.turn("stay", decided(held), 0).refused == 0
