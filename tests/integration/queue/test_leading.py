"""The leader's calls: terms, publishing, reaping, taking note. Every branch, on a real server."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from redis.exceptions import ConnectionError

from parallelrun_core.errors import Fenced
from parallelrun_core.leasing import Reports
from parallelrun_core.outcome import Failure
from parallelrun_core.phases import InitFailure, Phase
from parallelrun_core.states import JobState
from parallelrun_core.store.connection import ServerUnable, connect
from parallelrun_core.store.leader_queue import LeaderQueue, Published
from parallelrun_core.store.outcome_stream import (
    Concatenated,
    report_concatenated,
    report_init_failure,
    report_phases,
    report_preparing,
)
from parallelrun_master.policy.window import MAX_MESSAGES
from tests.integration.queue.job_on_redis import LONG_MS, JobOnRedis, decided, message, retried

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

PATIENCE_S = 5.0


def successor(job: JobOnRedis, name: str = "successor", folder_term: int = 0) -> LeaderQueue:
    """Another process leads from now on, as after the first one's key has run out."""
    job.redis.delete(job.keys.leader)
    queue = LeaderQueue(job.redis, job.job_id)
    assert queue.acquire(name, ttl_ms=LONG_MS, folder_term=folder_term)
    return queue


# Terms


def test_while_one_leads_no_other_does(job: JobOnRedis) -> None:
    assert LeaderQueue(job.redis, job.job_id).acquire("other", ttl_ms=LONG_MS, folder_term=9) == 0
    assert LeaderQueue(job.redis, job.job_id).acquire("leader", ttl_ms=LONG_MS, folder_term=9) == 0
    assert job.registry.status(job.job_id).term == 1


def test_each_turn_has_a_term_of_its_own(job: JobOnRedis) -> None:
    assert [successor(job, f"leader {number}").term for number in range(3)] == [2, 3, 4]


def test_the_term_is_above_all_terms_of_the_folder_even_when_redis_forgot(job: JobOnRedis) -> None:
    assert successor(job, folder_term=7).term == 8
    job.redis.hdel(job.keys.job, "term")
    assert successor(job, folder_term=8).term == 9
    assert successor(job, folder_term=3).term == 10


def test_the_leaders_key_runs_out_by_itself(job: JobOnRedis) -> None:
    assert 0 < int(job.redis.pttl(job.keys.leader)) <= LONG_MS
    job.leader.renew("leader", ttl_ms=2 * LONG_MS)
    assert int(job.redis.pttl(job.keys.leader)) > LONG_MS


def test_a_leader_that_is_not_heard_of_any_more_can_be_replaced(redis: Redis) -> None:
    job = JobOnRedis(redis)
    job.leader.renew("leader", ttl_ms=50)
    deadline = time.monotonic() + PATIENCE_S
    while not (term := LeaderQueue(redis, job.job_id).acquire("next", ttl_ms=LONG_MS, folder_term=0)):
        assert time.monotonic() < deadline, "nobody can lead"
        time.sleep(0.01)
    assert term == 2


def test_a_key_that_ran_out_may_be_taken_back_while_no_other_turn_has_begun(job: JobOnRedis) -> None:
    job.redis.delete(job.keys.leader)
    job.leader.renew("leader", ttl_ms=LONG_MS)
    assert job.registry.has_leader(job.job_id)


def test_who_was_replaced_cannot_renew_nor_resign_for_its_successor(job: JobOnRedis) -> None:
    new = successor(job)
    with pytest.raises(Fenced):
        job.leader.renew("leader", ttl_ms=LONG_MS)
    job.leader.resign("leader")
    assert job.registry.has_leader(job.job_id)
    new.renew("successor", ttl_ms=LONG_MS)


def test_who_was_replaced_cannot_renew_after_its_successor_has_gone_either(job: JobOnRedis) -> None:
    successor(job).resign("successor")
    with pytest.raises(Fenced):
        job.leader.renew("leader", ttl_ms=LONG_MS)
    assert not job.registry.has_leader(job.job_id)


def test_the_token_is_compared_too(job: JobOnRedis) -> None:
    with pytest.raises(Fenced):
        job.leader.renew("somebody else", ttl_ms=LONG_MS)
    job.leader.resign("somebody else")
    assert job.registry.has_leader(job.job_id)


def test_who_resigns_lets_the_next_one_lead_at_once(job: JobOnRedis) -> None:
    job.leader.resign("leader")
    assert not job.registry.has_leader(job.job_id)
    assert LeaderQueue(job.redis, job.job_id).acquire("next", ttl_ms=LONG_MS, folder_term=0) == 2


@pytest.mark.parametrize("to", [JobState.FAILED, JobState.FINALIZING])
def test_who_was_replaced_cannot_move_the_job_on(job: JobOnRedis, to: JobState) -> None:
    term = job.leader.term
    new = successor(job)
    before = job.everything()
    with pytest.raises(Fenced):
        job.registry.move(job.job_id, to, term=term)
    assert job.everything() == before
    job.registry.move(job.job_id, to, term=new.term)
    assert job.registry.state(job.job_id) is to


# Publishing


def test_publishing_moves_the_checkpoint_with_the_messages(job: JobOnRedis) -> None:
    assert job.leader.checkpoint() == 0
    published = job.publish(3)
    assert published == Published(next_id=3, outstanding=3)
    assert job.leader.checkpoint() == 3
    published = job.publish(2)
    assert published == Published(next_id=5, outstanding=5)
    assert job.ready() == [0, 1, 2, 3, 4]


def test_publishing_at_another_id_than_the_checkpoint_does_nothing_but_say_it(job: JobOnRedis) -> None:
    job.publish(3)
    before = job.everything()
    for first in (0, 2, 4):
        assert job.leader.publish(first, [message(first)] * 2).next_id == 3
    assert job.everything() == before


def test_the_same_call_twice_publishes_once(job: JobOnRedis) -> None:
    messages = [message(0), message(1)]
    job.leader.publish(0, messages)
    before = job.everything()
    job.leader.publish(0, messages)
    assert job.everything() == before


def test_what_is_decided_already_is_skipped_and_counted(job: JobOnRedis) -> None:
    published = job.leader.publish(0, [message(0), b"", message(2), b""])
    assert (published.next_id, published.outstanding) == (4, 2)
    assert job.ready() == [0, 2]
    assert job.leader.publish(4, [b"", b""]).next_id == 6
    assert job.leader.checkpoint() == 6
    assert job.messages() == {0, 2}


def test_publishing_nothing_looks_and_changes_nothing(job: JobOnRedis) -> None:
    job.publish(4)
    job.agent().lease(1)
    before = job.everything()
    published = job.leader.publish(4, [])
    assert published == Published(next_id=4, outstanding=4)
    assert job.everything() == before


def test_a_full_call_fits(job: JobOnRedis) -> None:
    job.publish(MAX_MESSAGES)
    assert len(job.ready()) == MAX_MESSAGES


def test_who_was_replaced_cannot_publish(job: JobOnRedis) -> None:
    new = successor(job)
    before = job.everything()
    with pytest.raises(Fenced):
        job.publish(1)
    assert job.everything() == before
    assert new.publish(0, [message(0)]).next_id == 1


def meanwhile(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Let this happen once, just after the leader has looked whether it may publish."""
    look, happened = LeaderQueue._checkpoint_to_continue, list[object]()

    def looked(queue: LeaderQueue, *found: bytes | None) -> int | None:
        checkpoint = look(queue, *found)
        if not happened:
            happened.append(change())
        return checkpoint

    monkeypatch.setattr(LeaderQueue, "_checkpoint_to_continue", looked)


def test_who_is_replaced_while_it_publishes_has_not_published(job: JobOnRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, lambda: successor(job))
    with pytest.raises(Fenced):
        job.leader.publish(0, [message(0)])
    assert (job.ready(), job.messages(), job.leader.checkpoint()) == ([], set(), 0)


def test_a_cancel_while_the_leader_publishes_comes_first(job: JobOnRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, lambda: job.registry.move(job.job_id, JobState.CANCELED))
    assert job.leader.publish(0, [message(0)]).next_id == 0
    assert (job.ready(), job.messages(), job.leader.checkpoint()) == ([], set(), 0)


def test_a_change_of_the_job_that_does_not_matter_only_delays_what_is_published(
    job: JobOnRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(monkeypatch, lambda: job.leader.show({"progress": "{}"}))
    assert job.leader.publish(0, [message(0)]).next_id == 1
    assert (job.ready(), job.messages(), job.leader.checkpoint()) == ([0], {0}, 1)


def test_a_connection_that_breaks_while_the_leader_publishes_is_an_error(
    job: JobOnRedis, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must look what Redis has forgotten."""
    client = connect(redis_url)
    number = client.client_id()
    queue = LeaderQueue(client, job.job_id)
    queue.term = job.leader.term
    meanwhile(monkeypatch, lambda: job.redis.client_kill_filter(_id=str(number)))
    with pytest.raises(ConnectionError):
        queue.publish(0, [message(0)])
    assert (job.ready(), job.messages(), job.leader.checkpoint()) == ([], set(), 0)


def test_a_redis_that_can_write_nothing_publishes_nothing_and_is_away(
    job: JobOnRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(monkeypatch, lambda: job.redis.config_set("maxmemory", 1))
    try:
        with pytest.raises(ServerUnable):
            job.leader.publish(0, [message(0)])
    finally:
        job.redis.config_set("maxmemory", 0)
    assert (job.ready(), job.messages(), job.leader.checkpoint()) == ([], set(), 0)


@pytest.mark.parametrize("state", [state for state in JobState if state is not JobState.PROCESSING])
def test_nothing_is_published_unless_the_job_is_processing(job: JobOnRedis, state: JobState) -> None:
    job.force(state)
    before = job.everything()
    assert job.publish(1).next_id == 0
    assert job.everything() == before


def test_nothing_is_published_for_a_job_that_redis_has_forgotten(job: JobOnRedis) -> None:
    job.force(None)
    with pytest.raises(Fenced):
        job.publish(1)
    assert job.ready() == []


# Reaping


def test_the_mini_batches_of_a_lost_session_go_to_others_at_the_infrastructures_expense(job: JobOnRedis) -> None:
    job.publish(5)
    lost, alive = job.agent("lost"), job.agent("alive")
    lost.lease(2)
    kept = alive.lease(1)
    job.expire(lost)
    reaped = job.leader.reap(max_lost=10, max_lease_ms=LONG_MS)
    assert (reaped.sessions, reaped.returned, reaped.given_up) == (1, 2, 0)
    assert list(job.leader.sessions()) == [alive.name]
    assert job.leases() == {2: kept[0].token}
    assert sorted(job.ready()) == [0, 1, 3, 4]
    again = alive.lease(2)
    assert sorted((each.mini_batch, each.tries, each.lost) for each in again) == [(0, 0, 1), (1, 0, 1)]
    assert all(each.is_suspect for each in again)


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
    assert (reaped.sessions, reaped.returned, reaped.given_up) == (1, 0, 0)


def test_sessions_of_which_one_name_begins_the_other_are_told_apart(job: JobOnRedis) -> None:
    job.publish(2)
    short, long = job.agent("n"), job.agent("n")
    short.lease(1)
    job.redis.hset(job.keys.leases, "1", f"{short.name}-1/x.")
    job.expire(short)
    assert job.leader.reap(max_lost=10, max_lease_ms=LONG_MS).returned == 1
    assert list(job.leases()) == [1]
    assert long.queue.reassert([]) == 0


def test_what_was_lost_too_often_is_given_up_as_an_entry_for_the_leader(job: JobOnRedis) -> None:
    job.publish(2)
    for _ in range(2):
        agent = job.agent()
        assert agent.lease(1)[0].mini_batch == 0
        job.expire(agent)
        assert job.leader.reap(max_lost=2, max_lease_ms=LONG_MS).returned == 1
    agent = job.agent()
    (delivery,) = agent.lease(1)
    assert delivery.lost == 2
    job.expire(agent)
    reaped = job.leader.reap(max_lost=2, max_lease_ms=LONG_MS)
    assert (reaped.returned, reaped.given_up) == (0, 1)
    (given_up,) = job.outcomes()
    assert (given_up.mini_batch, given_up.status, given_up.items, given_up.tries) == (0, "failed", 2, 0)
    assert given_up.failure is not None
    assert given_up.failure.category == "NODE_LOST"
    assert given_up.failed_items == 2
    assert job.ready() == [1]
    assert job.messages() == {1}
    assert job.charged() == {"tries": {}, "lost": {}}
    assert agent.queue.turn("join", decided([delivery]), 0).refused == 1


def test_what_is_given_up_says_how_many_tries_it_had(job: JobOnRedis) -> None:
    job.publish(1)
    agent = job.agent()
    agent.queue.turn("stay", retried(agent.lease(1)), 1)
    job.expire(agent)
    assert job.leader.reap(max_lost=0, max_lease_ms=LONG_MS).given_up == 1
    assert [each.tries for each in job.outcomes() if each.status == "failed"] == [1]


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


def test_many_mini_batches_of_a_large_node_come_back_at_once(job: JobOnRedis) -> None:
    for _ in range(9):
        job.publish(1000)
    agent = job.agent()
    for _ in range(9):
        agent.lease(1000)
    job.expire(agent)
    assert job.leader.reap(max_lost=10, max_lease_ms=LONG_MS).returned == 9000
    assert sorted(job.ready()) == list(range(9000))


# Taking note


def test_entries_come_in_order_and_from_where_the_reader_was(job: JobOnRedis) -> None:
    job.publish(3)
    agent = job.agent()
    held = agent.lease(3)
    agent.queue.turn("stay", decided(held[:2]), 0)
    failure = InitFailure("node", "process000", Failure("INIT_EXCEPTION", "no model", "Traceback"))
    report_init_failure(job.redis, job.job_id, failure)
    report_concatenated(job.redis, job.job_id, Concatenated("/out", 5, "abc"))
    report_preparing(job.redis, job.job_id, "node")
    *entries, preparing = job.leader.read_entries(b"0-0", block_ms=None)
    assert [[each.mini_batch for each in entry.outcomes] for entry in entries] == [[0, 1], [], []]
    assert [entry.preparing for entry in (*entries, preparing)] == ["", "", "", "node"]
    assert entries[1].init_failure == failure
    assert entries[2].concatenated == Concatenated("/out", 5, "abc")
    assert [entry.entry_id for entry in job.leader.read_entries(entries[0].entry_id, block_ms=None)] == [
        entries[1].entry_id, entries[2].entry_id, preparing.entry_id,
    ]  # fmt: skip
    assert job.leader.read_entries(preparing.entry_id, block_ms=1) == []


def test_who_comes_too_late_leaves_nothing_of_a_job_that_was_retired(job: JobOnRedis) -> None:
    job.registry.move(job.job_id, JobState.CANCELED)
    job.registry.retire(job.job_id, term=job.leader.term)
    before = job.everything()
    failure = Failure("INIT_EXCEPTION", "no model", "Traceback")
    report_init_failure(job.redis, job.job_id, InitFailure("node", "process000", failure))
    report_phases(job.redis, job.job_id, [Phase("node", "process000", "SHUTDOWN", 1.0, 1.0)])
    report_preparing(job.redis, job.job_id, "node")
    report_concatenated(job.redis, job.job_id, Concatenated("/out", 5, "abc"))
    assert job.everything() == before
    assert job.redis.exists(job.keys.outcomes) == 0


def test_what_is_forgotten_is_gone_and_nothing_else_is(job: JobOnRedis) -> None:
    job.publish(4)
    agent = job.agent()
    for delivery in agent.lease(4):
        agent.queue.turn("stay", decided([delivery]), 0)
    entries = job.leader.read_entries(b"0-0", block_ms=None)
    job.leader.forget(entries[1].entry_id)
    assert [each.mini_batch for each in job.outcomes()] == [2, 3]
    job.leader.forget(entries[1].entry_id)
    assert [each.mini_batch for each in job.outcomes()] == [2, 3]


def test_who_was_replaced_cannot_make_redis_forget_what_its_successor_has_not_read(job: JobOnRedis) -> None:
    """It has entered the outcome in a file that nobody reads: trimmed, the mini-batch would be lost for ever."""
    job.publish(1)
    agent = job.agent()
    new = successor(job)
    agent.queue.turn("stay", decided(agent.lease(1)), 0)
    (seen,) = job.leader.read_entries(b"0-0", block_ms=None)
    with pytest.raises(Fenced):
        job.leader.forget(seen.entry_id)
    assert [each.mini_batch for entry in new.read_entries(b"0-0", block_ms=None) for each in entry.outcomes] == [0]


def test_who_was_replaced_cannot_retire_the_job(job: JobOnRedis) -> None:
    term = job.leader.term
    new = successor(job)
    new.publish(0, [message(0), message(1)])
    before = job.everything()
    with pytest.raises(Fenced):
        job.registry.retire(job.job_id, term=term)
    assert job.everything() == before
    assert job.registry.active_jobs() == [job.job_id]


def test_who_led_a_job_before_it_was_reopened_leads_it_no_more(job: JobOnRedis) -> None:
    """It knows nothing of the generation that has begun, though nobody else may have led yet."""
    job.registry.move(job.job_id, JobState.FAILED, term=job.leader.term)
    job.registry.reopen(job.job_id, submitted=1.0)
    with pytest.raises(Fenced):
        job.leader.renew("leader", ttl_ms=LONG_MS)
    with pytest.raises(Fenced):
        job.registry.move(job.job_id, JobState.FAILED, term=job.leader.term)
    with pytest.raises(Fenced):
        job.registry.retire(job.job_id, term=job.leader.term)
    assert job.registry.state(job.job_id) is JobState.QUEUED
    assert LeaderQueue(job.redis, job.job_id).acquire("next", ttl_ms=LONG_MS, folder_term=1) == 3


def test_who_was_replaced_cannot_choose_the_nodes(job: JobOnRedis) -> None:
    new = successor(job)
    new.assign(["a"])
    with pytest.raises(Fenced):
        job.leader.assign(["b"])
    assert job.redis.smembers(job.keys.nodes) == {b"a"}


def test_a_reader_is_woken_by_a_change_of_state(job: JobOnRedis) -> None:
    job.registry.move(job.job_id, JobState.CANCELED)
    (entry,) = job.leader.read_entries(b"0-0", block_ms=None)
    assert (entry.outcomes, entry.init_failure, entry.concatenated) == ((), None, None)


def test_setbacks_are_counted_across_leaders_each_kind_anew_when_more_is_durable(job: JobOnRedis) -> None:
    assert job.leader.count_setback("crashes") == 1
    assert successor(job).count_setback("crashes") == 2
    assert job.leader.count_setback("hangs") == 1
    assert job.leader.count_setback("crashes", mark=5) == 1
    assert job.leader.count_setback("hangs", mark=5) == 1
    assert [job.leader.count_setback("crashes", mark=mark) for mark in (5, 0)] == [2, 3]
    job.registry.move(job.job_id, JobState.CANCELED)
    job.reopen_retired()
    assert job.leader.count_setback("crashes") == 1


def test_after_a_resignation_with_a_pause_nobody_leads_for_so_long(job: JobOnRedis) -> None:
    job.leader.resign("leader", pause_ms=30_000)
    assert job.registry.has_leader(job.job_id)
    assert job.leader.acquire("next", ttl_ms=1000, folder_term=0) == 0
    job.redis.pexpire(job.keys.leader, 1)
    until = time.monotonic() + PATIENCE_S
    while not (term := LeaderQueue(job.redis, job.job_id).acquire("next", ttl_ms=1000, folder_term=0)):
        assert time.monotonic() < until
    assert term == 2


def test_a_pause_of_one_who_was_replaced_is_of_no_account(job: JobOnRedis) -> None:
    successor(job)
    before = job.redis.get(job.keys.leader)
    job.leader.resign("leader", pause_ms=30_000)
    assert job.redis.get(job.keys.leader) == before


def test_what_is_shown_can_be_read_and_followed(job: JobOnRedis) -> None:
    job.leader.show({"progress": b'{"done": 7}', "started": "5.5"}, event=("progress", b'{"done":7}'))
    status = job.registry.status(job.job_id)
    assert status.progress.done == 7
    assert status.started == 5.5
    assert status.version == 1
    ((event, data),) = job.events()
    assert (event, data) == ("progress", '{"done":7}')


def test_an_announced_event_changes_nothing_but_the_version(job: JobOnRedis) -> None:
    before = job.registry.status(job.job_id)
    job.leader.announce("error", b'{"count":1}')
    assert job.registry.status(job.job_id) == replace(before, version=before.version + 1)
    assert job.events() == [("error", '{"count":1}')]


def test_a_turn_of_an_agent_does_not_need_a_leader(job: JobOnRedis) -> None:
    """Failover must not stop the work: agents lease and commit while nobody leads."""
    job.publish(1)
    job.redis.delete(job.keys.leader)
    agent = job.agent()
    held = agent.queue.turn("join", Reports(), 1).deliveries
    assert agent.queue.turn("stay", decided(held), 0).refused == 0
