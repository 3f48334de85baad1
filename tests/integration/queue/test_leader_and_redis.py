"""A leader whose Redis goes away, comes back, and has forgotten what came last."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from redis.exceptions import ConnectionError

from parallelrun_api.submission.reopening import Reopenings
from parallelrun_core.folder.decided import Decided
from parallelrun_core.folder.decisions import DecisionWriter, read_decisions
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import ManifestWriter
from parallelrun_core.folder.records import JobResult, Reopening
from parallelrun_core.ids import new_job_id
from parallelrun_core.intake.reopening import reopen
from parallelrun_core.store.keys import ACTIVE_JOBS
from parallelrun_core.store.nodes import NodeInfo, NodeRegistry
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.message import encode_files
from parallelrun_core.wire.outcome import Outcome
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState, NodeState
from parallelrun_master import leadership
from parallelrun_master import main as main_module
from parallelrun_master.leader.job_context import JobContext
from parallelrun_master.leadership import Leadership
from parallelrun_master.ledger import ledger
from parallelrun_master.ledger.ledger import Ledger
from parallelrun_master.main import Master
from parallelrun_master.policy import window
from parallelrun_master.publishing.publisher import Publisher
from parallelrun_master.settings import MasterSettings
from tests.integration.queue.job_on_redis import decided, returned
from tests.unit.core.factories import outcome

if TYPE_CHECKING:
    pass

from tests.integration.queue.job_context import PATIENCE_S, Led, wait_until

pytestmark = [
    pytest.mark.integration,
    # A leader has a process of its own, which ends with it and so closes its files.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_a_cancel_is_seen_though_the_connection_is_cut_when_it_has_just_been_read(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No agent works for the job, so nobody else wakes the leader."""
    job = led(3)
    tick, calls = Leadership.tick, 0

    def cut(led_by: Leadership, now: float) -> bool:
        nonlocal calls
        calls += 1
        if calls == 5:
            job.on_redis.registry.move(job.on_redis.job_id, JobState.CANCELED)
        elif calls == 6:  # a round later
            raise ConnectionError("cut")
        return tick(led_by, now)

    monkeypatch.setattr(Leadership, "tick", cut)
    job.run_leader()
    assert job.result().state is JobState.CANCELED


@pytest.mark.parametrize("is_noticed", [True, False])
@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.PROCESSING])
def test_a_redis_that_was_set_back_to_before_the_job_began_is_told_again(
    led: Callable[..., Led], state: JobState, is_noticed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a leader that asks nothing of it at that moment: redis-py then connects again without an error."""
    job = led(3)
    on_redis, keys = job.on_redis, job.on_redis.keys
    tick, calls = Leadership.tick, 0

    def set_back(led_by: Leadership, now: float) -> bool:
        nonlocal calls
        calls += 1
        if calls == 5:
            on_redis.force(state)
            on_redis.redis.hdel(keys.job, "published")
            on_redis.redis.delete(keys.outcomes, keys.ready, keys.messages)
            monkeypatch.setattr(leadership, "server_run_id", lambda _: "another")
            if is_noticed:
                raise ConnectionError("restarted")
            on_redis.redis.client_kill_filter(_id=str(job.leaders_client.client_id()))
        return tick(led_by, now)

    monkeypatch.setattr(Leadership, "tick", set_back)
    monkeypatch.setattr(leadership, "_TICK_S", 0.02)

    def work() -> None:
        assert wait_until(lambda: calls > 5)
        job.work()

    agent = threading.Thread(target=work)
    agent.start()
    try:
        job.run_leader()
    finally:
        agent.join()  # it gives up by itself, and before the server goes
    assert (job.result().state, job.result().progress.done) == (JobState.COMPLETED, 3)


def test_a_redis_that_was_set_back_is_told_again_of_the_nodes_and_of_the_beginning(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = led(3, instance_count=1)
    on_redis, keys = job.on_redis, job.on_redis.keys
    nodes, client = NodeRegistry(on_redis.redis), on_redis.redis
    for name in ("a", "b"):
        info = NodeInfo(
            node=name, session=name, host="h", pid=1, slots=2, busy=0, state=NodeState.READY, version="0", started=0.0
        )
        nodes.beat(info, lease_ms=600_000)
    tick, started = Leadership.tick, list[str | None]()

    def look() -> tuple[set[bytes], str | None]:
        return client.smembers(keys.nodes), client.hget(keys.job, "started")  # type: ignore[return-value]

    def set_back(led_by: Leadership, now: float) -> bool:
        assigned, began = look()
        if assigned and not started:
            started.append(began)
            on_redis.force(JobState.QUEUED)
            client.delete(keys.nodes)
            client.hdel(keys.job, "started")
            monkeypatch.setattr(leadership, "server_run_id", lambda _: "another")
            raise ConnectionError("restarted")
        return tick(led_by, now)

    monkeypatch.setattr(Leadership, "tick", set_back)
    monkeypatch.setattr(leadership, "_TICK_S", 0.02)
    leader = job.leader()
    thread = threading.Thread(target=leader.run)
    thread.start()
    assert wait_until(lambda: bool(started) and len(look()[0]) == 1 and look()[1] is not None)
    assert look()[1] == started[0]
    leader.resign()
    thread.join(PATIENCE_S)


def test_a_publisher_whose_job_is_in_another_state_publishes_nothing(led: Callable[..., Led]) -> None:
    """It would go round without a pause, and the job would seem to make progress."""
    job = led(0, state=JobState.PROCESSING)
    manifest = ManifestWriter(job.folder.path, 1)
    manifest.add(encode_files([(b"/in", [b"f0"])], 1), 1)
    manifest.close(order="sorted")
    publisher = Publisher(job.folder.path, job.on_redis.leader, Decided())
    job.on_redis.force(JobState.QUEUED)
    assert not publisher.step(1)
    job.on_redis.force(JobState.PROCESSING)
    assert publisher.step(1)


def test_a_leader_whose_successor_redis_has_forgotten_does_not_go_on(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would read what it enters, and Redis would forget it."""
    job = led(3)
    tick, calls = Leadership.tick, 0

    def set_back(led_by: Leadership, now: float) -> bool:
        nonlocal calls
        calls += 1
        if calls == 5:
            DecisionWriter(job.folder.path, led_by.term + 1).close()
            monkeypatch.setattr(leadership, "server_run_id", lambda _: "another")
            raise ConnectionError("restarted")
        return tick(led_by, now)

    monkeypatch.setattr(Leadership, "tick", set_back)
    job.run_leader()
    assert calls == 5
    assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.PROCESSING


def test_what_is_finalized_is_durable_though_redis_was_set_back_at_the_last_moment(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The books are full and not synced yet when Redis is restarted, and it has nothing to tell any more."""
    job = led(3)
    on_redis, agent, durable = job.on_redis, job.on_redis.agent(), list[list[int]]()
    tick, move, record, recorded = Leadership.tick, JobContext.move, Ledger.record, list[Outcome]()

    def recording(books: Ledger, outcomes: list[Outcome], *encoded: Any) -> Any:
        recorded.extend(outcomes)
        return record(books, outcomes, *encoded)

    def set_back(led_by: Leadership, now: float) -> bool:
        if len(recorded) == 3 and on_redis.redis.xtrim(on_redis.keys.outcomes, maxlen=0):
            monkeypatch.setattr(leadership, "server_run_id", lambda _: "another")
            raise ConnectionError("restarted")
        return tick(led_by, now)

    def moved(job_led: JobContext, to: JobState, failure: JobFailure | None = None) -> None:
        if to is JobState.FINALIZING:
            durable.append([each.mini_batch for each in read_decisions(job.folder.path)])
        move(job_led, to, failure)

    monkeypatch.setattr(ledger, "_SYNC_EVERY_S", 1e9)  # not unless it must be
    monkeypatch.setattr(Ledger, "record", recording)
    monkeypatch.setattr(Leadership, "tick", set_back)
    monkeypatch.setattr(JobContext, "move", moved)
    thread = threading.Thread(target=job.leader().run)
    thread.start()
    until = time.monotonic() + 30
    while len(held := agent.lease(3)) < 3 and time.monotonic() < until:
        agent.queue.turn("stay", returned(held), 0)
        time.sleep(0.01)
    agent.queue.turn("leave", decided(held), 0)
    thread.join(30)
    assert durable == [[0, 1, 2]]
    assert job.result().state is JobState.COMPLETED


def test_what_is_done_again_after_redis_was_set_back_makes_room_for_more(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole window of it, as with a restored snapshot: nothing else would be published for ever."""
    monkeypatch.setattr(window, "MAX_OUTSTANDING", 3)
    job = led(6, state=JobState.PROCESSING)
    listed = ManifestWriter(job.folder.path, 1)
    for number in range(3):
        listed.add(encode_files([(os.fsencode(job.root / "inputs"), [b"f%d" % number])], 1), 1)
    listed.sync()
    listed.stop()
    earlier = DecisionWriter(job.folder.path, 1)
    earlier.add([outcome(number) for number in range(3)])
    earlier.sync()
    earlier.close()
    job.on_redis.publish(3)
    agent = threading.Thread(target=job.work, args=(1,))  # what agents hold makes room in any case
    step = Publisher.step

    def begins(publisher: Publisher, scheduled: int) -> bool:
        if agent.ident is None:  # what was done before would make room, too
            agent.start()
        return step(publisher, scheduled)

    monkeypatch.setattr(Publisher, "step", begins)
    job.run_leader()
    agent.join(PATIENCE_S)
    assert (job.result().state, job.result().progress.done) == (JobState.COMPLETED, 6)


def forget_the_reopening(job: Led, *, is_active: bool = False) -> None:
    """Redis loses its last second, with what it was told of a `resume`, and perhaps that the job was retired."""
    on_redis, client = job.on_redis, job.on_redis.redis
    job.folder.conclude(
        JobResult(job_id=on_redis.job_id, state=JobState.FAILED, started=1.0, ended=2.0, progress=Progress())
    )
    on_redis.registry.retire(on_redis.job_id, term=on_redis.leader.term)
    before = client.dump(on_redis.keys.job)
    Reopenings(job.root, client).resume(on_redis.job_id, accept_changed_inputs=False)
    assert before is not None
    client.restore(on_redis.keys.job, 0, before, replace=True)
    if not is_active:
        client.zrem(ACTIVE_JOBS, on_redis.job_id)


def test_a_resume_that_redis_has_forgotten_is_done_all_the_same(led: Callable[..., Led]) -> None:
    job = led(1, state=JobState.FAILED)
    forget_the_reopening(job)
    Master(MasterSettings(root=job.root, redis_url=job.url)).check()
    assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.QUEUED
    assert job.on_redis.registry.active_jobs() == [job.on_redis.job_id]
    assert job.folder.generation() == 1


def test_a_job_that_goes_on_does_not_end_as_the_generation_before_it(led: Callable[..., Led]) -> None:
    job = led(1, state=JobState.FAILED)
    forget_the_reopening(job, is_active=True)
    job.leader().run()
    assert job.folder.result() is None
    assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.QUEUED


def test_a_job_that_goes_on_does_so_also_where_that_is_seen_late(led: Callable[..., Led]) -> None:
    """As on NFS, which shows a folder for a minute as it was before."""
    job = led(1, state=JobState.FAILED)
    registry, job_id = job.on_redis.registry, job.on_redis.job_id
    ends = JobResult(job_id=job_id, state=JobState.FAILED, started=1.0, ended=2.0, progress=Progress())
    job.folder.conclude(ends)
    reopen(registry, job.folder, Reopening(generation=1, at=1.0, retry_failed=False))
    job.folder.layout.reopening(1).rename(job.root / "hidden")
    job.leader().run()
    assert (registry.state(job_id), registry.is_active(job_id)) == (JobState.QUEUED, True)


@pytest.mark.parametrize("spoil, lasts_s", [(os.unlink, 75), (partial(os.truncate, length=9), 10)], ids=["gone", "cut"])
def test_a_job_fails_whose_submission_stays_unreadable_for_longer_than_nfs_hides_it(
    led: Callable[..., Led], spoil: Callable[[Path], None], lasts_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, clock = led(1), SimpleNamespace(now=1000.0)
    monkeypatch.setattr(main_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    spoil(job.folder.layout.record)
    master = Master(MasterSettings(root=job.root, redis_url=job.url))
    for passed_s, state in ((0, JobState.QUEUED), (lasts_s - 1, JobState.QUEUED), (2, JobState.FAILED)):
        clock.now += passed_s
        master.check()
        assert job.on_redis.registry.state(job.on_redis.job_id) is state


def test_what_redis_has_forgotten_is_registered_though_the_first_attempt_is_cut_off(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis was emptied and not restarted, so nothing but a claim, which only one can have, says so."""
    job = led(1)
    master = Master(MasterSettings(root=job.root, redis_url=job.url))
    master.check()
    job.on_redis.redis.flushdb()
    reopen, calls = Registry.reopen, 0

    def cut_off(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ConnectionError("cut")
        return reopen(*args, **options)

    monkeypatch.setattr(Registry, "reopen", cut_off)
    with pytest.raises(ConnectionError):
        master.check()
    master.check()
    assert job.on_redis.registry.active_jobs() == [job.on_redis.job_id]


def test_a_job_folder_that_may_not_be_entered_holds_up_no_other_job(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = led(1)
    job.on_redis.redis.flushdb()
    locked = new_job_id()
    (job.root / "jobs" / locked).mkdir()
    of_others: Any = vars(JobFolder)["has_record"]

    def has_record(folder: JobFolder) -> bool:
        if folder.job_id == locked:
            raise PermissionError(13, "Permission denied")
        return bool(of_others.fget(folder))

    monkeypatch.setattr(JobFolder, "has_record", property(has_record))
    Master(MasterSettings(root=job.root, redis_url=job.url)).check()
    assert job.on_redis.registry.active_jobs() == [job.on_redis.job_id]


@pytest.mark.parametrize("is_recorded", [False, True])
def test_a_job_that_is_about_to_end_or_has_ended_is_not_taken_for_a_reopened_one(
    led: Callable[..., Led], is_recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when its leader records the end and takes it off the list while the master looks."""
    job = led(1, state=JobState.CANCELED)
    on_redis, look = job.on_redis, Registry.is_active

    def end() -> None:
        result = JobResult(job_id=on_redis.job_id, state=JobState.CANCELED, started=1.0, ended=2.0, progress=Progress())
        job.folder.conclude(result)
        on_redis.registry.retire(on_redis.job_id, term=on_redis.leader.term)

    def ends_meanwhile(registry: Registry, job_id: str) -> bool:
        end()
        return look(registry, job_id)

    if is_recorded:
        monkeypatch.setattr(Registry, "is_active", ends_meanwhile)
    Master(MasterSettings(root=job.root, redis_url=job.url)).check()
    assert on_redis.registry.state(on_redis.job_id) is JobState.CANCELED
