"""A whole leader on a real server, with agents that this test plays: from the beginning of its term to the end."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis.exceptions import ConnectionError

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.folder.job_folder import JobResult
from parallelrun_core.folder.manifest import ManifestWriter
from parallelrun_core.message import encode_files
from parallelrun_core.progress import Progress
from parallelrun_core.states import JobState
from parallelrun_core.store.concatenation_lock import acquire_concatenation, release_concatenation
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.outcome_stream import MAX_ENTRIES, Concatenated, report_concatenated
from parallelrun_core.store.rq.entries import CONCATENATE, queue
from parallelrun_master import finishing, leadership, scheduling
from parallelrun_master import leader as leader_module
from parallelrun_master.policy import concatenation
from parallelrun_master.policy.stages import Stage
from parallelrun_master.processing import Processing
from tests.integration.queue.job_on_redis import decided
from tests.integration.queue.led import PATIENCE_S, Led, wait_until

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

    def slow(*args: Any) -> Any:
        if not slow_steps:
            slow_steps.append(name)
            job.on_redis.redis.delete(job.on_redis.keys.leader)  # as if it had run out
            until = time.monotonic() + PATIENCE_S
            while not job.on_redis.registry.has_leader(job.on_redis.job_id) and time.monotonic() < until:
                time.sleep(0.001)  # as one who reads from a slow disk
        assert LeaderQueue(job.on_redis.redis, job.on_redis.job_id).acquire("rival", ttl_ms=600_000, folder_term=0) == 0
        return whole(*args)

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


@pytest.mark.parametrize("state", [JobState.CANCELED, JobState.FAILED, JobState.FINALIZING])
def test_who_takes_over_after_the_result_was_recorded_awaits_agents_and_cleans_up(
    led: Callable[..., Led], state: JobState
) -> None:
    job = led(1, state=state)
    ended = state if state.is_terminal else JobState.COMPLETED
    job.folder.conclude(JobResult(job_id=job.on_redis.job_id, state=ended, started=1.0, ended=2.0, progress=Progress()))
    agent = job.on_redis.agent()
    agent.lease(0)
    timer = threading.Timer(0.5, lambda: agent.queue.turn("leave", decided(()), 0))
    timer.start()
    job.leader().run()
    timer.join()
    assert job.on_redis.registry.active_jobs() == []
    assert job.on_redis.registry.state(job.on_redis.job_id) is ended


@pytest.mark.parametrize("state", [JobState.CANCELED, JobState.FAILED])
def test_what_was_committed_before_the_end_is_kept_also_by_the_next_leader(
    led: Callable[..., Led], state: JobState
) -> None:
    """More of it than one reading takes; who resumes the job doesn't run it again."""
    job = led(1, state=JobState.PROCESSING)
    on_redis = job.on_redis
    assert on_redis.leader.acquire("before", ttl_ms=600_000, folder_term=0)
    on_redis.publish(MAX_ENTRIES + 20)
    agent = on_redis.agent()
    for delivery in agent.lease(MAX_ENTRIES + 10):
        assert agent.queue.turn("stay", decided([delivery]), 0).refused == 0
    on_redis.registry.move(on_redis.job_id, state)
    agent.queue.turn("leave", decided(()), 0)
    on_redis.leader.resign("before")
    job.leader().run()
    assert len(list(read_decisions(job.folder.path))) == MAX_ENTRIES + 10
    assert (job.result().state, job.result().progress.done) == (state, MAX_ENTRIES + 10)


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


def test_while_a_concatenation_lives_no_other_is_asked_for(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_AGAIN_S", "_GONE_S"):
        monkeypatch.setattr(concatenation, name, 0.01)
    monkeypatch.setattr(finishing, "_WAIT_MS", 10)
    job = led(1, state=JobState.FINALIZING, output_action="append_row")
    on_redis, looks = job.on_redis, threading.Semaphore(0)
    on_redis.redis.xadd(on_redis.keys.outcomes, {"state": "finalizing"})
    alive = LeaderQueue.is_concatenating

    def looked(queue: LeaderQueue) -> bool:
        looks.release()
        return alive(queue)

    monkeypatch.setattr(LeaderQueue, "is_concatenating", looked)
    assert acquire_concatenation(on_redis.redis, on_redis.job_id, ttl_ms=60_000)
    thread = threading.Thread(target=job.leader().run)
    thread.start()
    asked = queue(on_redis.redis, CONCATENATE)
    for _ in range(5):
        assert looks.acquire(timeout=30)
    assert asked.count == 0
    release_concatenation(on_redis.redis, on_redis.job_id)
    until = time.monotonic() + 30
    while not asked.count and time.monotonic() < until:
        time.sleep(0.01)
    for _ in range(5):
        assert looks.acquire(timeout=30)
    assert asked.count == 1, "asked for again while the first one waits for its turn"
    report_concatenated(on_redis.redis, on_redis.job_id, Concatenated("", 0, "", is_postponed=True))
    report_concatenated(on_redis.redis, on_redis.job_id, Concatenated("/out", 5, "abc"))
    thread.join(30)
    assert (job.result().state, job.result().output) == (JobState.COMPLETED, "/out")


def test_a_leader_that_is_cut_off_while_it_recovers_leaves_the_job_to_the_next(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds nothing yet that would be worth waiting for."""

    def cut(*_: object) -> None:
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
