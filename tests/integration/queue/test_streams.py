"""What a leader reads of the outcomes, and what those who watch its job read of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from parallelrun_core.errors import Fenced
from parallelrun_core.store.outcome_stream import (
    Concatenated,
    report,
    report_concatenated,
    report_preparing,
)
from parallelrun_core.wire.outcome import Failure, InitFailure, Phase
from parallelrun_core.wire.states import JobState
from tests.integration.queue.job_on_redis import JobOnRedis, decided, successor

pytestmark = pytest.mark.integration


def test_entries_come_in_order_and_from_where_the_reader_was(job: JobOnRedis) -> None:
    job.publish(3)
    agent = job.agent()
    held = agent.lease(3)
    agent.queue.turn("stay", decided(held[:2]), 0)
    failure = InitFailure("node", "process000", Failure("INIT_EXCEPTION", "no model", "Traceback"))
    report(job.redis, job.job_id, "init_failed", failure, job.seal("node-1"))
    report_concatenated(job.redis, job.job_id, Concatenated("/out", 5, "abc"), job.seal())
    report_preparing(job.redis, job.job_id, "node")
    *entries, preparing = job.entries()
    assert [[each.mini_batch for each in entry.outcomes] for entry in entries] == [[0, 1], [], []]
    assert [entry.preparing for entry in (*entries, preparing)] == ["", "", "", "node"]
    assert entries[1].init_failure == failure
    assert entries[2].concatenated == Concatenated("/out", 5, "abc")
    assert [entry.entry_id for entry in job.entries(entries[0].entry_id)] == [
        entries[1].entry_id, entries[2].entry_id, preparing.entry_id,
    ]  # fmt: skip
    assert job.entries(preparing.entry_id, 1) == []


def test_who_comes_too_late_leaves_nothing_of_a_job_that_was_retired(job: JobOnRedis) -> None:
    job.registry.move(job.job_id, JobState.CANCELED)
    job.registry.retire(job.job_id, term=job.leader.term)
    before = job.everything()
    failure = Failure("INIT_EXCEPTION", "no model", "Traceback")
    report(job.redis, job.job_id, "init_failed", InitFailure("node", "process000", failure), job.seal("node-1"))
    report(job.redis, job.job_id, "phases", [Phase("node", "process000", "SHUTDOWN", 1.0, 1.0)], job.seal("node-1"))
    report_preparing(job.redis, job.job_id, "node")
    report_concatenated(job.redis, job.job_id, Concatenated("/out", 5, "abc"), job.seal())
    assert job.everything() == before
    assert job.redis.exists(job.keys.outcomes) == 0


def test_what_is_forgotten_is_gone_and_nothing_else_is(job: JobOnRedis) -> None:
    job.publish(4)
    agent = job.agent()
    for delivery in agent.lease(4):
        agent.queue.turn("stay", decided([delivery]), 0)
    entries = job.entries()
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
    (seen,) = job.entries()
    with pytest.raises(Fenced):
        job.leader.forget(seen.entry_id)
    (entry,) = new.read_entries(b"0-0", job.seals, block_ms=None)
    assert [each.mini_batch for each in entry.outcomes] == [0]


def test_a_reader_is_woken_by_a_change_of_state(job: JobOnRedis) -> None:
    job.registry.move(job.job_id, JobState.CANCELED)
    (entry,) = job.entries()
    assert (entry.outcomes, entry.init_failure, entry.concatenated) == ((), None, None)


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
