"""A leader puts up again what nobody has, and nothing else: Redis checks each mini-batch once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from parallelrun_core.errors import Fenced
from parallelrun_core.wire.leasing import TurnReports
from parallelrun_core.wire.states import JobState
from tests.integration.queue.job_on_redis import LONG_MS, JobOnRedis, decided, message, retried

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

NOTHING_READ = b"0-0"


def test_only_what_neither_waits_nor_is_held_is_put_up(redis: Redis) -> None:
    job = JobOnRedis(redis)
    job.publish(6)
    agent = job.agent()
    assert [each.mini_batch for each in agent.lease(2)] == [0, 1]
    paused = agent.lease(1)
    agent.queue.turn("stay", retried(paused, pause_ms=LONG_MS), 0)
    (entry,) = job.leader.read_entries(NOTHING_READ, job.seals, block_ms=None)
    redis.hdel(job.keys.messages, "5")  # somebody has removed it
    redis.lrem(job.keys.ready, 0, "5")
    redis.lrem(job.keys.ready, 0, "4")
    assert [*map(set, job.leader.whereabouts())] == [{0, 1, 2, 3, 4}, {2, 3}, {0, 1}]

    again = [(number, message(number) if number == 5 else b"") for number in range(6)]
    assert job.leader.republish(entry.entry_id, again) == 2
    assert job.leader.republish(entry.entry_id, again) == 0
    assert [*map(set, job.leader.whereabouts())] == [{0, 1, 2, 3, 4, 5}, {2, 3, 4, 5}, {0, 1}]
    assert sorted(each.mini_batch for each in agent.lease(9)) == [3, 4, 5], "2 pauses"


def test_what_a_vanished_session_holds_is_put_up_and_its_result_refused(redis: Redis) -> None:
    job = JobOnRedis(redis)
    job.publish(1)
    vanished, other = job.agent(), job.agent()
    (delivery,) = vanished.lease(1)
    redis.zrem(job.keys.sessions, vanished.name)  # not by the leader, which would have taken back what it held
    assert [*map(set, job.leader.whereabouts())] == [{0}, set(), set()]
    assert job.leader.republish(NOTHING_READ, [(0, b"")]) == 1
    (again,) = other.lease(1)
    assert again.mini_batch == delivery.mini_batch
    turn = vanished.queue.turn("join", decided([delivery]), 0)
    assert turn.refused == 1


def test_nothing_is_put_up_while_there_are_results_that_were_not_read(redis: Redis) -> None:
    job = JobOnRedis(redis)
    job.publish(1)
    agent = job.agent()
    agent.queue.turn("stay", decided(agent.lease(1)), 0)
    assert job.leader.republish(NOTHING_READ, [(0, message(0))]) == 0
    (entry,) = job.leader.read_entries(NOTHING_READ, job.seals, block_ms=None)
    assert job.leader.republish(entry.entry_id, [(0, message(0))]) == 1, "the leader knows better"


def test_only_the_leader_of_a_job_that_is_processing_puts_something_up(redis: Redis) -> None:
    job = JobOnRedis(redis)
    job.publish(1)
    redis.delete(job.keys.ready, job.keys.messages)
    job.force(JobState.FINALIZING)
    assert job.leader.republish(NOTHING_READ, [(0, message(0))]) == 0
    job.force(JobState.PROCESSING)
    redis.hset(job.keys.job, "term", 9)
    with pytest.raises(Fenced):
        job.leader.republish(NOTHING_READ, [(0, message(0))])
    assert job.agent().queue.turn("join", TurnReports(), 1).deliveries == ()
