"""A whole leader on a real server, with agents that this test plays: its term, and takeovers at awkward moments."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from redis.exceptions import ConnectionError

from parallelrun_core.documents.schema import encode
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import ManifestWriter
from parallelrun_core.folder.records import JobResult, Reopening, Resumed
from parallelrun_core.intake.reopening import reopen
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.wire.message import encode_files
from parallelrun_core.wire.outcome import LostRows
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master import leadership
from parallelrun_master.leader import leader as leader_module
from parallelrun_master.leader.job_context import JobContext
from parallelrun_master.leader.processing import Processing
from parallelrun_master.policy.stages import Stage
from parallelrun_master.publishing import scheduling
from parallelrun_master.publishing.publisher import Publisher

if TYPE_CHECKING:
    pass

from tests.integration.queue.job_context import PATIENCE_S, Led, wait_until
from tests.unit.core.factories import names_in

pytestmark = [
    pytest.mark.integration,
    # A leader has a process of its own, which ends with it and so closes its files.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_a_job_is_led_from_its_beginning_to_its_end(led: Callable[..., Led]) -> None:
    job = led(25)
    thread, leader = threading.Thread(target=job.work), job.leader()
    thread.start()
    leader.run()
    thread.join(30)
    assert leader.stage is Stage.RETIRED
    result = job.result()
    assert result.state is JobState.COMPLETED
    assert (result.progress.done, result.progress.scheduled, result.order) == (25, 25, "sorted")
    assert sorted(each.mini_batch for each in read_decisions(job.folder.path)) == list(range(25))
    assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.COMPLETED
    assert job.on_redis.registry.active_jobs() == []


def test_what_nodes_write_into_is_durable_before_they_may_begin(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    job, durable, at_start = led(1), set[str](), list[set[str]]()
    inode, fsync, start = job.folder.path.stat().st_ino, os.fsync, JobContext.start

    def noted_sync(fd: int) -> None:
        names = names_in(job.folder.path) if os.fstat(fd).st_ino == inode else []
        fsync(fd)
        durable.update(names)

    def noted_start(context: JobContext) -> None:
        at_start.append({*durable})
        start(context)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(JobContext, "start", noted_start)
    thread = threading.Thread(target=job.work)
    thread.start()
    job.leader().run()
    thread.join(PATIENCE_S)
    assert {"parts", "journals", "outputs"} <= at_start[0]


SLOW: dict[str, tuple[Any, str]] = {
    "recovery": (leader_module, "recover"),
    "manifest": (scheduling, "known_in"),
    "listing": (scheduling.Scheduler, "step"),
    "inputs": (Processing, "_changed_inputs"),
}


@pytest.mark.parametrize("step", SLOW)
def test_a_leader_whose_step_takes_longer_than_its_lease_goes_on(
    led: Callable[..., Led], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each one is replaced as soon as it is ready, for ever."""
    job = led(3)
    where, name = SLOW[step]
    whole, slow_steps = getattr(where, name), list[str]()

    def slow(*args: Any, **named: Any) -> Any:
        if not slow_steps:
            slow_steps.append(name)
            job.on_redis.redis.delete(job.on_redis.keys.leader)  # as if it had run out
            until = time.monotonic() + PATIENCE_S
            while not job.on_redis.registry.has_leader(job.on_redis.job_id) and time.monotonic() < until:
                time.sleep(0.001)  # as one who reads from a slow disk
        assert LeaderQueue(job.on_redis.redis, job.on_redis.job_id).acquire("rival", ttl_ms=600_000, folder_term=0) == 0
        return whole(*args, **named)

    manifest = ManifestWriter(job.folder.path, 1)
    manifest.add(encode_files([(os.fsencode(job.root / "inputs"), [b"f0"])], 1), 1)  # or there is nothing to read
    manifest.sync()
    manifest.stop()
    monkeypatch.setattr(where, name, slow)
    monkeypatch.setattr(leadership, "_BEATS_PER_LEASE", 6_000)  # ten a second
    thread = threading.Thread(target=job.work)
    thread.start()
    job.leader().run()
    thread.join(30)
    assert slow_steps == [name]
    assert (job.result().state, job.result().progress.done) == (JobState.COMPLETED, 3)


def test_a_leader_that_is_stuck_is_replaced_and_does_no_harm_when_it_goes_on(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = led(3)
    step, stuck, again = scheduling.Scheduler.step, threading.Event(), threading.Event()

    def sticks(scheduler: scheduling.Scheduler, budget_s: float) -> bool:
        if not stuck.is_set():
            stuck.set()
            again.wait(60)
        return step(scheduler, budget_s)

    monkeypatch.setattr(scheduling.Scheduler, "step", sticks)
    leader = job.leader(seconds=0.5)  # another thread gives its lease back, and nothing ends this process
    first = threading.Thread(target=leader.run)
    first.start()
    try:
        assert stuck.wait(PATIENCE_S)
        assert wait_until(lambda: not job.on_redis.registry.has_leader(job.on_redis.job_id)), "it leads on"
        agent = threading.Thread(target=job.work)
        agent.start()
        assert wait_until(job.is_led_to_its_end), "nobody may lead"
        again.set()
        for thread in (agent, first):
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
    finally:
        leader.resign()
        again.set()
        first.join(PATIENCE_S)
    assert leader.stage is Stage.FENCED
    assert (job.result().state, job.result().progress.done) == (JobState.COMPLETED, 3)
    assert sorted(each.mini_batch for each in read_decisions(job.folder.path)) == [0, 1, 2]


def test_a_cancel_in_the_middle_of_publishing_is_concluded_by_the_same_leader(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = led(30)
    step = Publisher.step

    def canceled_just_before(publisher: Publisher, scheduled: int) -> bool:
        if job.on_redis.registry.state(job.on_redis.job_id) is JobState.PROCESSING:
            job.on_redis.registry.move(job.on_redis.job_id, JobState.CANCELED)
        return step(publisher, scheduled)

    monkeypatch.setattr(Publisher, "step", canceled_just_before)
    job.leader().run()
    assert job.result().state is JobState.CANCELED
    assert job.on_redis.registry.active_jobs() == []


def test_a_cancel_is_noticed_while_a_leader_reads_what_was_taken_over(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = led(1)
    resumed = Resumed(job_id="job_earlier", mini_batches=1, rows=1, bytes=1)
    job.folder.layout.record.write_bytes(encode(msgspec.structs.replace(job.folder.record(), resumed=resumed)))

    def slow_disk(_: JobFolder, is_broken_off: Callable[[], bool]) -> Iterator[LostRows]:
        assert not is_broken_off()
        job.folder.record_cancel(0)
        until = time.monotonic() + PATIENCE_S
        while not is_broken_off():
            assert time.monotonic() < until
            time.sleep(0.005)
        yield from ()

    monkeypatch.setattr(leader_module, "lost_rows", slow_disk)
    job.run_leader()
    assert (job.result().state, job.result().started) == (JobState.CANCELED, None)


def test_a_changed_input_whose_name_is_no_utf_8_is_told(led: Callable[..., Led]) -> None:
    job = led(0, state=JobState.FAILED)
    manifest = ManifestWriter(job.folder.path, 1)
    manifest.add(encode_files([(os.fsencode(job.root / "inputs"), [b"b\xff"])], 1), 1)
    manifest.close(order="sorted")
    job.folder.conclude(
        JobResult(job_id=job.on_redis.job_id, state=JobState.FAILED, started=1.0, ended=2.0, progress=Progress())
    )
    reopen(job.on_redis.registry, job.folder, Reopening(generation=1, at=1.0, retry_failed=False))
    job.run_leader()
    failure = job.result().failure
    assert failure is not None
    assert (failure.code, "b\\udcff is gone" in failure.summary) == ("INPUTS_CHANGED", True)


def test_a_leader_told_to_stop_while_workers_shut_down_leaves_the_output_to_the_next(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = led(1, state=JobState.FINALIZING, output_action="append_row")
    job.on_redis.agent().lease(0)
    leader, sessions = job.leader(), LeaderQueue.sessions

    def told_to_stop(queue: LeaderQueue) -> Iterator[str]:
        leader.resign()
        return sessions(queue)

    monkeypatch.setattr(LeaderQueue, "sessions", told_to_stop)
    leader.run()
    assert leader.stage is Stage.RESIGNED
    assert job.folder.result() is None, "the job has ended without its output"
    assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.FINALIZING
    assert not job.on_redis.registry.has_leader(job.on_redis.job_id)


def test_a_leader_that_is_cut_off_while_it_recovers_leaves_the_job_to_the_next(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds nothing yet that would be worth waiting for."""

    def cut(*_: object, **__: object) -> None:
        raise ConnectionError("cut")

    monkeypatch.setattr(leader_module, "recover", cut)
    leader = led(1).leader()
    with pytest.raises(ConnectionError):
        leader.run()
    assert leader.stage is Stage.CUT_OFF


def test_a_second_leader_is_turned_away(led: Callable[..., Led]) -> None:
    job = led(1)
    holder: Any = job.on_redis.leader
    assert holder.acquire("somebody", ttl_ms=600_000, folder_term=0)
    leader = job.leader()
    leader.run()
    assert leader.stage is Stage.TURNED_AWAY
    assert job.folder.result() is None
    assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.QUEUED
