"""How a leader publishes: messages and checkpoint move together, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from redis.exceptions import ConnectionError

from parallelrun_core.errors import Fenced
from parallelrun_core.store import fast_path
from parallelrun_core.store.connection import ServerUnable, connect
from parallelrun_core.store.fast_path import Ask, Command
from parallelrun_core.store.leader_queue import LeaderQueue, Published
from parallelrun_core.wire.leasing import TurnReports
from parallelrun_core.wire.states import JobState
from parallelrun_master.policy.window import MAX_MESSAGES
from tests.integration.queue.job_on_redis import JobOnRedis, decided, message, retried, successor

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration


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
    """Let this happen once, just after the leader has checked whether it may publish, and before it does."""
    talk, happened = fast_path.conversation, list[object]()

    @contextmanager
    def interrupted(client: Redis) -> Iterator[Ask]:
        with talk(client) as ask:

            def ask_later(*commands: Command) -> list[Any]:
                if commands[0] == ("MULTI",) and not happened:
                    happened.append(change())
                return ask(*commands)

            yield ask_later

    monkeypatch.setattr(fast_path, "conversation", interrupted)


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


def expedite(job: JobOnRedis, *mini_batches: int) -> int:
    return job.leader.expedite([(number, message(number)) for number in mini_batches])


def test_what_waits_can_be_moved_to_the_front(job: JobOnRedis) -> None:
    job.publish(5)
    assert expedite(job, 3, 4) == 2
    assert (job.ready(), job.leader.expedited()) == ([4, 3, 0, 1, 2], frozenset())
    agent = job.agent()
    agent.queue.turn("stay", retried(agent.lease(2), pause_ms=60_000), 0)
    assert (expedite(job, 3), job.ready()) == (1, [3, 0, 1, 2]), "it pauses after a failed try"
    assert job.leader.whereabouts()[1] == {0, 1, 2, 3, 4}


def test_what_is_held_or_decided_is_not_expedited(job: JobOnRedis) -> None:
    agent = job.agent()
    job.publish(3)
    held, other = agent.lease(2)
    agent.queue.turn("stay", decided([held]), 0)
    before = job.everything()
    assert expedite(job, held.mini_batch, other.mini_batch) == 0
    assert (job.ready(), job.messages()) == ([2], {1, 2})
    assert job.everything().keys() == before.keys()


def test_what_is_not_published_can_be_expedited_once(job: JobOnRedis) -> None:
    job.publish(2)
    assert expedite(job, 7, 9) == 2
    assert (job.ready(), sorted(job.leader.expedited()), job.leader.checkpoint()) == ([9, 7, 0, 1], [7, 9], 2)
    agent = job.agent()
    agent.queue.turn("stay" if agent.lease(1) else "join", TurnReports(), 0)
    agent.queue.turn("leave", TurnReports(), 0)
    session = job.agent()
    first = session.lease(1)
    assert [each.mini_batch for each in first] == [9]
    session.queue.turn("stay", decided(first), 0)
    assert expedite(job, 9) == 0, "it is decided, though the checkpoint isn't there yet"
    assert job.leader.expedited() == {7, 9}


def test_another_generation_begins_without_what_was_expedited(job: JobOnRedis) -> None:
    job.publish(2)
    expedite(job, 7)
    job.leader.generation += 1
    assert job.leader.expedited() == frozenset()
    expedite(job, 8)
    assert job.leader.expedited() == {8}


def test_who_was_replaced_cannot_expedite(job: JobOnRedis) -> None:
    job.publish(2)
    successor(job)
    with pytest.raises(Fenced):
        expedite(job, 1)
