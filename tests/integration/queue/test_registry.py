"""Jobs and nodes as Redis knows them, and the moves of a job from state to state."""

from __future__ import annotations

import threading

import pytest

from parallelrun_core.errors import Conflict, NotFound, ParallelRunError
from parallelrun_core.ids import new_job_id
from parallelrun_core.store import keys
from parallelrun_core.store.connection import connect, without_password
from parallelrun_core.store.nodes import NodeInfo, NodeRegistry
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.leasing import TurnReports
from parallelrun_core.wire.states import ALLOWED_FROM, TERMINAL, JobState, NodeState
from tests.integration.queue.job_on_redis import LONG_MS, JobOnRedis

pytestmark = pytest.mark.integration


def node(name: str = "node", **fields: object) -> NodeInfo:
    described = {"session": "s", "host": "h", "pid": 1, "slots": 2, "busy": 0, "state": NodeState.READY, "version": "1",
                 "started": 1.0, **fields}  # fmt: skip
    return NodeInfo(node=name, **described)  # type: ignore[arg-type]


@pytest.mark.parametrize("to", JobState)
@pytest.mark.parametrize("present", JobState)
def test_every_move_is_allowed_or_refused_as_the_table_says(job: JobOnRedis, present: JobState, to: JobState) -> None:
    job.force(present)
    before = job.everything()
    if present in ALLOWED_FROM[to]:
        job.registry.move(job.job_id, to)
        assert job.registry.state(job.job_id) is to
        assert job.registry.status(job.job_id).version == 1
        ((event, data),) = job.events()
        assert (event, data) == ("state", f'{{"state":"{to}"}}')
        assert len(job.entries()) == 1
    else:
        with pytest.raises(Conflict, match=present.value):
            job.registry.move(job.job_id, to)
        assert job.everything() == before


def test_nothing_leaves_a_terminal_state() -> None:
    assert not any(TERMINAL & origins for origins in ALLOWED_FROM.values())
    assert {state for state in JobState if state.is_terminal} == TERMINAL


def test_a_job_that_is_not_there_cannot_move_and_does_not_appear(job: JobOnRedis) -> None:
    for to in JobState:
        with pytest.raises(NotFound):
            job.registry.move("job_that_is_not_there", to)
    assert job.registry.state("job_that_is_not_there") is None
    with pytest.raises(NotFound):
        job.registry.status("job_that_is_not_there")


def test_the_failure_is_kept_with_the_state(job: JobOnRedis) -> None:
    failure = JobFailure(code="NO_ROWS", summary="É: nothing", first_cause="x", sample_mini_batches=[1, 2])
    job.registry.move(job.job_id, JobState.FAILED, failure)
    assert job.registry.status(job.job_id).failure == failure


def test_of_many_who_race_exactly_one_wins(job: JobOnRedis, redis_url: str) -> None:
    results: list[str] = []
    barrier = threading.Barrier(8)

    def race(number: int) -> None:
        with connect(redis_url) as client:
            registry = Registry(client)
            barrier.wait(20)
            try:
                registry.move(job.job_id, (JobState.CANCELED, JobState.FINALIZING)[number % 2])
                results.append("won")
            except ParallelRunError:
                results.append("lost")

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(results) == ["lost"] * 7 + ["won"]


def test_adding_a_job_twice_changes_nothing(job: JobOnRedis) -> None:
    job.registry.move(job.job_id, JobState.CANCELED)
    before = job.everything()
    job.registry.add_job(job.job_id, submitted=1.0)
    assert job.everything() == before
    assert job.registry.active_jobs() == [job.job_id]


def test_active_jobs_come_oldest_first_with_what_is_ready(job: JobOnRedis) -> None:
    younger, oldest = new_job_id(), new_job_id()
    job.registry.add_job(younger, submitted=5.0)
    job.registry.add_job(oldest, submitted=0.5)
    job.publish(3)
    job.redis.zadd(keys.ACTIVE_JOBS, {"job_forgotten": 9.0})
    assert job.registry.peek() == [
        (oldest, JobState.QUEUED, 0, 0), (job.job_id, JobState.PROCESSING, 3, 0), (younger, JobState.QUEUED, 0, 0),
        ("job_forgotten", None, 0, 0),
    ]  # fmt: skip


def test_a_look_sees_what_has_changed_since_the_last_one(job: JobOnRedis) -> None:
    assert job.registry.peek() == [(job.job_id, JobState.PROCESSING, 0, 0)]
    job.publish(2)
    assert job.registry.peek() == [(job.job_id, JobState.PROCESSING, 2, 0)]
    for node in ("a", "b"):
        job.agent(node).lease(0)
    assert job.registry.peek() == [(job.job_id, JobState.PROCESSING, 2, 2)]
    other = new_job_id()
    job.registry.add_job(other, submitted=5.0)
    assert job.registry.peek() == [(job.job_id, JobState.PROCESSING, 2, 2), (other, JobState.QUEUED, 0, 0)]
    job.registry.retire(job.job_id, term=job.leader.term)
    assert job.registry.peek() == [(other, JobState.QUEUED, 0, 0)]
    job.redis.script_flush()
    job.redis.flushall()
    assert job.registry.peek() == []


def test_a_look_is_one_call_while_the_jobs_stay_the_same(job: JobOnRedis) -> None:
    job.registry.peek()
    job.redis.config_resetstat()
    for _ in range(5):
        job.registry.peek()
    calls = job.redis.info("commandstats")
    assert calls["cmdstat_evalsha"]["calls"] == 5


def test_of_many_jobs_that_wait_for_a_leader_most_are_looked_at_now_and_then(job: JobOnRedis) -> None:
    job_ids = [new_job_id() for _ in range(100)]
    for number, job_id in enumerate(job_ids):
        job.registry.add_job(job_id, submitted=10.0 + number)
    job.registry.peek()
    job.registry.peek()
    job.redis.config_resetstat()
    assert job.registry.peek()[1:] == [(job_id, JobState.QUEUED, 0, 0) for job_id in job_ids]
    assert job.redis.info("commandstats")["cmdstat_hmget"]["calls"] == 1 + 32
    job.registry.move(job_ids[10], JobState.CANCELED)
    job.registry.move(job_ids[90], JobState.CANCELED)
    assert job.registry.peek()[11].state is JobState.CANCELED
    looks = [job.registry.peek() for _ in range(10)]
    assert [look[91].state for look in looks if look[91].state is not JobState.QUEUED] != []
    assert {look[11].state for look in looks} == {JobState.CANCELED}
    job.registry.add_job(younger := new_job_id(), submitted=1000.0)
    job.registry.retire(job.job_id, term=job.leader.term)
    assert [each.job_id for each in job.registry.peek()] == [*job_ids, younger]


def test_without_jobs_there_is_nothing_to_peek_at(job: JobOnRedis) -> None:
    job.redis.flushall()
    assert job.registry.peek() == []


def test_a_retired_job_is_remembered_for_a_while_and_frees_the_rest(job: JobOnRedis) -> None:
    job.publish(3)
    job.agent().lease(1)
    job.registry.move(job.job_id, JobState.CANCELED)
    job.leader.resign("leader")
    job.registry.retire(job.job_id, term=job.leader.term)
    assert job.registry.active_jobs() == []
    assert job.registry.state(job.job_id) is JobState.CANCELED
    left = [key for key in job.keys.all() if job.redis.exists(key)]
    assert left == [job.keys.job, job.keys.events]
    assert all(int(job.redis.ttl(key)) > 86_400 for key in left)


def test_every_key_of_a_job_has_its_hash_tag_and_is_listed(job: JobOnRedis) -> None:
    job.publish(2)
    agent = job.agent()
    agent.lease(1)
    job.leader.assign(["node"])
    job.registry.move(job.job_id, JobState.CANCELED)
    found = {key.decode() for key in job.everything()}
    assert found <= set(job.keys.all())
    assert all(f"{{{job.job_id}}}" in key for key in job.keys.all())


# Nodes


def test_a_node_is_alive_while_it_beats_and_known_until_it_leaves(job: JobOnRedis) -> None:
    NodeRegistry(job.redis).beat(node("b", busy=1), lease_ms=60_000)
    NodeRegistry(job.redis).beat(node("a"), lease_ms=60_000)
    assert [(info.node, alive) for info, alive in NodeRegistry(job.redis).all()] == [("a", True), ("b", True)]
    job.redis.zadd(keys.NODES_ALIVE, {"a": 1})
    assert [(info.node, alive) for info, alive in NodeRegistry(job.redis).all()] == [("a", False), ("b", True)]
    NodeRegistry(job.redis).beat(node("a", busy=2), lease_ms=60_000)
    assert [(info.busy, alive) for info, alive in NodeRegistry(job.redis).all()] == [(2, True), (1, True)]
    NodeRegistry(job.redis).remove("a")
    assert [(info.node, info.busy) for info, _ in NodeRegistry(job.redis).all()] == [("b", 1)]
    assert job.redis.zrange(keys.NODES_ALIVE, 0, -1) == [b"b"]


def test_a_drained_node_is_asked_to_leave_until_it_has_left(job: JobOnRedis) -> None:
    nodes = NodeRegistry(job.redis)
    for name in ("a", "b"):
        assert not nodes.beat(node(name, session=f"{name}-1"), lease_ms=60_000).leave
    assert nodes.drain("a").node == "a"
    assert nodes.beat(node("a", session="a-1"), lease_ms=60_000).leave
    assert not nodes.beat(node("b", session="b-1"), lease_ms=60_000).leave
    nodes.remove("a", "a-1")
    assert nodes.asked_to_leave() == set()
    with pytest.raises(NotFound, match="no node 'a'"):
        nodes.drain("a")


def test_a_drained_node_that_was_killed_works_when_it_comes_back(job: JobOnRedis) -> None:
    nodes = NodeRegistry(job.redis)
    nodes.beat(node("a", session="a-1"), lease_ms=60_000)
    nodes.drain("a")
    job.redis.zadd(keys.NODES_ALIVE, {"a": job.registry.now() * 1000 - 1000})  # nothing was heard of it for a while
    assert not nodes.beat(node("a", session="a-2"), lease_ms=60_000).leave
    assert nodes.asked_to_leave() == set()


def test_a_drained_node_of_a_compute_is_asked_by_the_name_that_its_provisioner_knows(job: JobOnRedis) -> None:
    nodes = NodeRegistry(job.redis)
    nodes.beat(node("cpu-1", compute="cpu"), lease_ms=60_000)
    nodes.drain("cpu-1")
    assert nodes.asked_to_leave() == {"cpu-1"}
    assert nodes.beat(node("cpu-1", session="other", compute="cpu"), lease_ms=60_000).leave


def test_a_node_lives_by_its_own_lease_also_when_the_clock_is_set_back(job: JobOnRedis) -> None:
    def alive_ms(name: str) -> float:
        return float(job.redis.zscore(keys.NODES_ALIVE, name) or 0) - job.registry.now() * 1000

    NodeRegistry(job.redis).beat(node("long"), lease_ms=600_000)
    NodeRegistry(job.redis).beat(node("short"), lease_ms=1_000)
    assert alive_ms("long") > 500_000
    job.redis.zincrby(keys.NODES_ALIVE, 3_600_000, "long")
    NodeRegistry(job.redis).beat(node("short"), lease_ms=1_000)
    assert 500_000 < alive_ms("long") <= 600_000


def test_a_node_that_has_been_lost_for_a_day_is_forgotten(job: JobOnRedis) -> None:
    for name in ("a", "b", "c"):
        NodeRegistry(job.redis).beat(node(name), lease_ms=60_000)
    day_ago = (job.registry.now() - 86_400) * 1000
    job.redis.zadd(keys.NODES_ALIVE, {"a": day_ago - 1, "b": day_ago + 600_000})
    NodeRegistry(job.redis).beat(node("c"), lease_ms=60_000)
    assert [(info.node, alive) for info, alive in NodeRegistry(job.redis).all()] == [("b", False), ("c", True)]
    assert job.redis.zrange(keys.NODES_ALIVE, 0, -1) == [b"b", b"c"]


def test_a_password_is_not_shown() -> None:
    assert without_password("redis://user:secret@host:6379/0") == "redis://user:***@host:6379/0"
    assert without_password("redis://:secret@host/0") == "redis://:***@host/0"
    assert without_password("redis://host:6379/0") == "redis://host:6379/0"
    assert "p%40ss" not in without_password("rediss://u:p%40ss@h")


def test_registry_one_node_is_the_first_to_join_a_small_job_in_each_generation(job: JobOnRedis) -> None:
    assert [job.registry.is_first_to_join(job.job_id) for _ in range(3)] == [True, False, False]
    job.force(JobState.FAILED)
    job.registry.reopen(job.job_id, submitted=1.0, generation=1)
    assert [job.registry.is_first_to_join(job.job_id) for _ in range(2)] == [True, False]


def test_registry_nobody_joins_a_job_that_is_gone_and_nothing_stays_of_it(job: JobOnRedis) -> None:
    before = set(job.redis.keys())
    assert not job.registry.is_first_to_join("job_that_is_gone")
    assert set(job.redis.keys()) == before


def test_registry_once_its_nodes_are_gone_a_small_job_has_a_first_one_again(job: JobOnRedis) -> None:
    lost, leaving = job.agent("lost"), job.agent("leaving")
    for agent in (lost, leaving):
        agent.lease(0)
    assert job.registry.is_first_to_join(job.job_id)
    job.expire(lost)
    job.leader.reap(max_lost=10, max_lease_ms=LONG_MS)
    assert not job.registry.is_first_to_join(job.job_id), "one of them still works for it"
    leaving.queue.turn("leave", TurnReports(), 0)
    assert job.registry.is_first_to_join(job.job_id)
    last = job.agent("last")
    last.lease(0)
    job.expire(last)
    job.leader.reap(max_lost=10, max_lease_ms=LONG_MS)
    assert job.registry.is_first_to_join(job.job_id)
