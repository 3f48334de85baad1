"""Jobs and nodes as Redis knows them, and the moves of a job from state to state."""

from __future__ import annotations

import threading

import pytest

from parallelrun_core.errors import Conflict, NotFound, ParallelRunError
from parallelrun_core.failure import JobFailure
from parallelrun_core.ids import new_job_id
from parallelrun_core.states import ALLOWED_FROM, TERMINAL, JobState, NodeState
from parallelrun_core.store import keys
from parallelrun_core.store.connection import connect, without_password
from parallelrun_core.store.idempotency import IdempotencyKeys
from parallelrun_core.store.nodes import NodeInfo, Nodes
from parallelrun_core.store.registry import Registry
from tests.integration.queue.desk import Desk

pytestmark = pytest.mark.integration


def node(name: str = "node", **fields: object) -> NodeInfo:
    described = {"session": "s", "host": "h", "pid": 1, "slots": 2, "busy": 0, "state": NodeState.READY, "version": "1",
                 "started": 1.0, **fields}  # fmt: skip
    return NodeInfo(node=name, **described)  # type: ignore[arg-type]


@pytest.mark.parametrize("to", JobState)
@pytest.mark.parametrize("present", JobState)
def test_every_move_is_allowed_or_refused_as_the_table_says(desk: Desk, present: JobState, to: JobState) -> None:
    desk.force(present)
    before = desk.everything()
    if present in ALLOWED_FROM[to]:
        desk.registry.move(desk.job_id, to)
        assert desk.registry.state(desk.job_id) is to
        assert desk.registry.status(desk.job_id).version == 1
        ((_, event, data),) = desk.registry.events(desk.job_id, "0", block_ms=None)
        assert (event, data) == ("state", f'{{"state":"{to}"}}')
        assert len(desk.leader.news(b"0-0", block_ms=None)) == 1
    else:
        with pytest.raises(Conflict, match=present.value):
            desk.registry.move(desk.job_id, to)
        assert desk.everything() == before


def test_nothing_leaves_a_terminal_state() -> None:
    assert not any(TERMINAL & origins for origins in ALLOWED_FROM.values())
    assert {state for state in JobState if state.is_terminal} == TERMINAL


def test_a_job_that_is_not_there_cannot_move_and_does_not_appear(desk: Desk) -> None:
    for to in JobState:
        with pytest.raises(NotFound):
            desk.registry.move("job_that_is_not_there", to)
    assert desk.registry.state("job_that_is_not_there") is None
    with pytest.raises(NotFound):
        desk.registry.status("job_that_is_not_there")


def test_the_failure_is_kept_with_the_state(desk: Desk) -> None:
    failure = JobFailure(code="NO_ROWS", summary="É: nothing", first_cause="x", sample_mini_batches=[1, 2])
    desk.registry.move(desk.job_id, JobState.FAILED, failure)
    assert desk.registry.status(desk.job_id).failure == failure


def test_of_many_who_race_exactly_one_wins(desk: Desk, redis_url: str) -> None:
    results: list[str] = []
    barrier = threading.Barrier(8)

    def race(number: int) -> None:
        with connect(redis_url) as client:
            registry = Registry(client)
            barrier.wait(20)
            try:
                registry.move(desk.job_id, (JobState.CANCELED, JobState.FINALIZING)[number % 2])
                results.append("won")
            except ParallelRunError:
                results.append("lost")

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(results) == ["lost"] * 7 + ["won"]


def test_adding_a_job_twice_changes_nothing(desk: Desk) -> None:
    desk.registry.move(desk.job_id, JobState.CANCELED)
    before = desk.everything()
    desk.registry.add_job(desk.job_id, submitted=1.0)
    assert desk.everything() == before
    assert desk.registry.active_jobs() == [desk.job_id]


def test_active_jobs_come_oldest_first_with_what_is_ready(desk: Desk) -> None:
    younger, oldest = new_job_id(), new_job_id()
    desk.registry.add_job(younger, submitted=5.0)
    desk.registry.add_job(oldest, submitted=0.5)
    desk.publish(3)
    desk.redis.zadd(keys.ACTIVE_JOBS, {"job_forgotten": 9.0})
    assert desk.registry.peek() == [
        (oldest, JobState.QUEUED, 0), (desk.job_id, JobState.PROCESSING, 3), (younger, JobState.QUEUED, 0),
        ("job_forgotten", None, 0),
    ]  # fmt: skip


def test_a_look_sees_what_has_changed_since_the_last_one(desk: Desk) -> None:
    assert desk.registry.peek() == [(desk.job_id, JobState.PROCESSING, 0)]
    desk.publish(2)
    assert desk.registry.peek() == [(desk.job_id, JobState.PROCESSING, 2)]
    other = new_job_id()
    desk.registry.add_job(other, submitted=5.0)
    assert desk.registry.peek() == [(desk.job_id, JobState.PROCESSING, 2), (other, JobState.QUEUED, 0)]
    desk.registry.retire(desk.job_id, term=desk.leader.term)
    assert desk.registry.peek() == [(other, JobState.QUEUED, 0)]
    desk.redis.script_flush()
    desk.redis.flushall()
    assert desk.registry.peek() == []


def test_a_look_is_one_call_while_the_jobs_stay_the_same(desk: Desk) -> None:
    desk.registry.peek()
    desk.redis.config_resetstat()
    for _ in range(5):
        desk.registry.peek()
    calls = desk.redis.info("commandstats")
    assert calls["cmdstat_evalsha"]["calls"] == 5


def test_without_jobs_there_is_nothing_to_peek_at(desk: Desk) -> None:
    desk.redis.flushall()
    assert desk.registry.peek() == []


def test_a_retired_job_is_remembered_for_a_while_and_frees_the_rest(desk: Desk) -> None:
    desk.publish(3)
    desk.agent().lease(1)
    desk.registry.move(desk.job_id, JobState.CANCELED)
    desk.leader.resign("leader")
    desk.registry.retire(desk.job_id, term=desk.leader.term)
    assert desk.registry.active_jobs() == []
    assert desk.registry.state(desk.job_id) is JobState.CANCELED
    left = [key for key in desk.keys.all() if desk.redis.exists(key)]
    assert left == [desk.keys.job, desk.keys.events]
    assert all(int(desk.redis.ttl(key)) > 86_400 for key in left)


def test_every_key_of_a_job_has_its_hash_tag_and_is_listed(desk: Desk) -> None:
    desk.publish(2)
    agent = desk.agent()
    agent.lease(1)
    desk.leader.assign(["node"])
    desk.registry.move(desk.job_id, JobState.CANCELED)
    found = {key.decode() for key in desk.everything()}
    assert found <= set(desk.keys.all())
    assert all(f"{{{desk.job_id}}}" in key for key in desk.keys.all())


# Idempotency keys


def test_a_key_stays_with_its_first_job(desk: Desk) -> None:
    assert IdempotencyKeys(desk.redis).claim("k", "hash", "job_1") == "job_1"
    assert IdempotencyKeys(desk.redis).claim("k", "hash", "job_2") == "job_1"
    with pytest.raises(Conflict):
        IdempotencyKeys(desk.redis).claim("k", "other hash", "job_3")
    assert 0 < int(desk.redis.ttl(keys.idempotency("k"))) <= 86_400
    IdempotencyKeys(desk.redis).release("k")
    assert IdempotencyKeys(desk.redis).claim("k", "other hash", "job_4") == "job_4"


# Nodes


def test_a_node_is_alive_while_it_beats_and_known_until_it_leaves(desk: Desk) -> None:
    Nodes(desk.redis).beat(node("b", busy=1), lease_ms=60_000)
    Nodes(desk.redis).beat(node("a"), lease_ms=60_000)
    assert [(info.node, alive) for info, alive in Nodes(desk.redis).all()] == [("a", True), ("b", True)]
    desk.redis.zadd(keys.NODES_ALIVE, {"a": 1})
    assert [(info.node, alive) for info, alive in Nodes(desk.redis).all()] == [("a", False), ("b", True)]
    Nodes(desk.redis).beat(node("a", busy=2), lease_ms=60_000)
    assert [(info.busy, alive) for info, alive in Nodes(desk.redis).all()] == [(2, True), (1, True)]
    Nodes(desk.redis).remove("a")
    assert [(info.node, info.busy) for info, _ in Nodes(desk.redis).all()] == [("b", 1)]
    assert desk.redis.zrange(keys.NODES_ALIVE, 0, -1) == [b"b"]


def test_a_node_lives_by_its_own_lease_also_when_the_clock_is_set_back(desk: Desk) -> None:
    def alive_ms(name: str) -> float:
        return float(desk.redis.zscore(keys.NODES_ALIVE, name) or 0) - desk.registry.now() * 1000

    Nodes(desk.redis).beat(node("long"), lease_ms=600_000)
    Nodes(desk.redis).beat(node("short"), lease_ms=1_000)
    assert alive_ms("long") > 500_000
    desk.redis.zincrby(keys.NODES_ALIVE, 3_600_000, "long")
    Nodes(desk.redis).beat(node("short"), lease_ms=1_000)
    assert 500_000 < alive_ms("long") <= 600_000


def test_a_node_that_has_been_lost_for_a_day_is_forgotten(desk: Desk) -> None:
    for name in ("a", "b", "c"):
        Nodes(desk.redis).beat(node(name), lease_ms=60_000)
    day_ago = (desk.registry.now() - 86_400) * 1000
    desk.redis.zadd(keys.NODES_ALIVE, {"a": day_ago - 1, "b": day_ago + 600_000})
    Nodes(desk.redis).beat(node("c"), lease_ms=60_000)
    assert [(info.node, alive) for info, alive in Nodes(desk.redis).all()] == [("b", False), ("c", True)]
    assert desk.redis.zrange(keys.NODES_ALIVE, 0, -1) == [b"b", b"c"]


def test_a_password_is_not_shown() -> None:
    assert without_password("redis://user:secret@host:6379/0") == "redis://user:***@host:6379/0"
    assert without_password("redis://:secret@host/0") == "redis://:***@host/0"
    assert without_password("redis://host:6379/0") == "redis://host:6379/0"
    assert "p%40ss" not in without_password("rediss://u:p%40ss@h")
