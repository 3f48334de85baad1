"""How a leader ends a job: the output is asked for, the end recorded once, and agents leave."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult, Reopening
from parallelrun_core.store.concatenation_lock import acquire_concatenation, release_concatenation
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.outcome_stream import MAX_ENTRIES, Concatenated, report_concatenated
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.rq.entries import CONCATENATE, queue
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master.leader import finishing
from parallelrun_master.leader import leader as leading
from parallelrun_master.leader.finishing import Finishing
from parallelrun_master.leader.leftovers import wait_for_removals
from parallelrun_master.policy import concatenation
from tests.integration.queue.job_on_redis import decided

if TYPE_CHECKING:
    pass

from tests.integration.queue.job_context import Led

pytestmark = [
    pytest.mark.integration,
    # A leader has a process of its own, which ends with it and so closes its files.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.parametrize("state", [JobState.CANCELED, JobState.FAILED, JobState.FINALIZING, JobState.QUEUED])
def test_who_takes_over_once_the_end_is_recorded_waits_for_agents_and_cleans_up(
    led: Callable[..., Led], state: JobState, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = led(1, state=state)
    ended = state if state.is_terminal else JobState.COMPLETED
    job.folder.conclude(JobResult(job_id=job.on_redis.job_id, state=ended, started=1.0, ended=2.0, progress=Progress()))
    agent = job.on_redis.agent()
    agent.lease(0)
    timer = threading.Timer(0.5, lambda: agent.queue.turn("leave", decided(()), 0))
    timer.start()
    job.folder.journals.mkdir()
    (job.folder.journals / "session").touch()
    later_key = job.folder.keys / "later-00000000"
    retire = Registry.retire

    def retires(registry: Registry, job_id: str, *, term: int) -> None:
        retire(registry, job_id, term=term)
        later_key.touch()  # from now on, the job may be reopened

    monkeypatch.setattr(Registry, "retire", retires)
    job.leader().run()
    timer.join()
    wait_for_removals()
    assert not job.folder.journals.exists()
    assert [*job.folder.keys.iterdir()] == [later_key]
    assert job.on_redis.registry.active_jobs() == []
    assert job.on_redis.registry.state(job.on_redis.job_id) is ended


@pytest.mark.parametrize("step, before, behind", [
    ((JobFolder, "conclude"), 1, 0), ((Finishing, "_show_end"), 1, 0), ((Finishing, "_show_end"), 0, 2),
    ((Registry, "retire"), 1, 0),
])  # fmt: skip
def test_a_leader_that_wakes_when_its_job_was_reopened_leaves_that_alone(
    led: Callable[..., Led], step: tuple[type, str], before: int, behind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one has recorded the end, the user has let the job go on, and its output is being put together.

    Args:
        before, behind: which call of this step the leader has slept before, or behind.
    """
    job = led(1, state=JobState.FAILED)
    on_redis, folder = job.on_redis, job.folder
    whole, calls, after = getattr(*step), 0, dict[bytes, Any]()
    output = Path(folder.output_file(folder.record().job_spec()))
    journal = folder.journals / "session"
    merging = output.with_name(f".merging-{on_redis.job_id}-0123456789abcdef")

    def another_ends_it() -> None:
        on_redis.redis.delete(on_redis.keys.leader)  # as if it had run out
        job.leader().run()
        folder.reopen(Reopening(generation=1, at=1.0, retry_failed=True))
        on_redis.reopen_retired()
        on_redis.publish(3)
        folder.layout.make_folders()
        journal.touch()
        merging.touch()
        after.update(on_redis.everything())

    def sleeps(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        number = calls
        if number == before:
            another_ends_it()
        answer = whole(*args, **options)
        if number == behind:
            another_ends_it()
        return answer

    monkeypatch.setattr(*step, sleeps)
    job.leader().run()
    wait_for_removals()
    assert after, "nobody has slept"
    assert folder.result() is None, "its end was recorded as that of another generation"
    assert merging.exists()
    assert journal.exists()
    assert on_redis.registry.active_jobs() == [on_redis.job_id]
    assert on_redis.everything() == after


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
    report_concatenated(on_redis.redis, on_redis.job_id, Concatenated("/out", 5, "abc"), on_redis.seal())
    thread.join(30)
    assert (job.result().state, job.result().output) == (JobState.COMPLETED, "/out")


@pytest.mark.parametrize("leaves", [True, False])
def test_what_workers_leave_for_a_store_is_waited_for_and_else_told(
    led: Callable[..., Led], leaves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finishing, "_LEAVE_S", 0.1)
    monkeypatch.setattr(finishing, "_REQUEST_S", 0.1)
    monkeypatch.setattr(finishing, "_WAIT_MS", 10)
    job = led(1, state=JobState.FINALIZING, output="s3://bucket/out", task_overhead_timeout=20 if leaves else 1)
    agent = job.on_redis.agent("node007")
    agent.lease(0)
    had_ended = []

    def leave() -> None:
        had_ended.append(job.folder.result() is not None)
        agent.queue.turn("leave", decided(()), 0)

    timer = threading.Timer(1.0, leave)
    if leaves:
        timer.start()
    job.leader().run()
    if leaves:
        timer.join()
        assert (had_ended, job.result().warnings) == ([False], [])
    else:
        (warning,) = job.result().warnings
        assert "node007" in warning
    assert job.result().state is JobState.COMPLETED


def test_advice_is_made_once_all_else_is_done_and_by_nobody_else(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = led(1, state=JobState.CANCELED)
    asked = list[tuple[bool, bool]]()

    def killed(folder: JobFolder, result: JobResult) -> list[str]:
        ended = job.on_redis.registry.state(job.on_redis.job_id) is JobState.CANCELED
        asked.append((folder.result() == result, ended and not job.on_redis.registry.active_jobs()))
        raise KeyboardInterrupt  # as if there were no memory for it

    monkeypatch.setattr(leading, "lines_of_advice", killed)
    with pytest.raises(KeyboardInterrupt):
        job.leader().run()
    job.leader().run()

    assert asked == [(True, True)]
    assert "was canceled" in (job.folder.logs / "job_result.txt").read_text()


def test_advice_is_a_section_of_the_result(led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch) -> None:
    job = led(1, state=JobState.CANCELED)
    monkeypatch.setattr(leading, "lines_of_advice", lambda *_: ["", "What would make it faster:", "1. Larger ones."])
    job.leader().run()

    text = (job.folder.logs / "job_result.txt").read_text()
    assert "was canceled" in text
    assert "1. Larger ones.\n" in text
