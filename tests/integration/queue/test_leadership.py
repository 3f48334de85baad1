"""Who leads a job: terms, leases, and what one who was replaced can no longer do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from parallelrun_core.errors import Fenced
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.wire.leasing import TurnReports
from parallelrun_core.wire.states import JobState
from tests.integration.queue.job_context import wait_until
from tests.integration.queue.job_on_redis import LONG_MS, JobOnRedis, decided, message, successor

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

PATIENCE_S = 5.0


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
    job.registry.reopen(job.job_id, submitted=1.0, generation=1)
    with pytest.raises(Fenced):
        job.leader.renew("leader", ttl_ms=LONG_MS)
    with pytest.raises(Fenced):
        job.registry.move(job.job_id, JobState.FAILED, term=job.leader.term)
    with pytest.raises(Fenced):
        job.registry.retire(job.job_id, term=job.leader.term)
    assert job.registry.state(job.job_id) is JobState.QUEUED
    assert LeaderQueue(job.redis, job.job_id).acquire("next", ttl_ms=LONG_MS, folder_term=1) == 3


def test_who_was_replaced_cannot_choose_the_nodes_nor_close_the_job(job: JobOnRedis) -> None:
    new = successor(job)
    new.assign(["a"])
    with pytest.raises(Fenced):
        job.leader.assign(["b"])
    assert job.redis.smembers(job.keys.nodes) == {b"a"}
    with pytest.raises(Fenced):
        job.leader.close()
    assert not job.redis.hexists(job.keys.job, "used_up")
    new.close()
    assert job.redis.hexists(job.keys.job, "used_up")


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


def test_how_long_setbacks_last_is_counted_from_the_first_of_a_row(job: JobOnRedis) -> None:
    assert job.leader.set_back_for_s("store_away") == 0
    job.leader.count_setback("store_away")
    before = job.registry.now()
    wait_until(lambda: job.registry.now() > before + 0.2)
    successor(job).count_setback("store_away")
    assert 0.2 <= job.leader.set_back_for_s("store_away") < 60
    assert job.leader.set_back_for_s("hangs") == 0
    job.leader.count_setback("store_away", mark=1)
    assert job.leader.set_back_for_s("store_away") < 0.2, "something was done since"


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


def test_a_turn_of_an_agent_does_not_need_a_leader(job: JobOnRedis) -> None:
    """Failover must not stop the work: agents lease and commit while nobody leads."""
    job.publish(1)
    job.redis.delete(job.keys.leader)
    agent = job.agent()
    held = agent.queue.turn("join", TurnReports(), 1).deliveries
    assert agent.queue.turn("stay", decided(held), 0).refused == 0
