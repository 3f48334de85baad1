"""A whole leader on a real server, while the user cancels, resumes or retries its job at awkward moments."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from redis.exceptions import ConnectionError

from parallelrun_api.submission.reopening import Reopenings
from parallelrun_core.folder.job_folder import JobFolder, JobResult, Reopening
from parallelrun_core.folder.manifest import ManifestWriter
from parallelrun_core.message import encode_files
from parallelrun_core.progress import Progress
from parallelrun_core.states import JobState
from parallelrun_core.store.keys import ACTIVE_JOBS
from parallelrun_core.store.registry import Registry
from parallelrun_master.finishing import Finishing
from parallelrun_master.leadership import Leadership
from parallelrun_master.main import Master
from parallelrun_master.publisher import Publisher
from parallelrun_master.settings import MasterSettings
from tests.integration.queue.led import Led

pytestmark = [
    pytest.mark.integration,
    # A leader has a process of its own, which ends with it and so closes its files.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


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
    merging = folder.output_file(folder.record().job_spec()).parent / f".merging-{on_redis.job_id}-0123456789abcdef"

    def another_ends_it() -> None:
        on_redis.redis.delete(on_redis.keys.leader)  # as if it had run out
        job.leader().run()
        folder.reopen(Reopening(generation=1, at=1.0, retry_failed=True))
        on_redis.reopen_retired()
        on_redis.publish(3)
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
    assert after, "nobody has slept"
    assert folder.result() is None, "its end was recorded as that of another generation"
    assert merging.exists()
    assert on_redis.registry.active_jobs() == [on_redis.job_id]
    assert on_redis.everything() == after


def forget_the_reopening(job: Led) -> None:
    """Redis loses its last second, with what it was told of a `resume`."""
    on_redis, client = job.on_redis, job.on_redis.redis
    job.folder.conclude(
        JobResult(job_id=on_redis.job_id, state=JobState.FAILED, started=1.0, ended=2.0, progress=Progress())
    )
    on_redis.registry.retire(on_redis.job_id, term=on_redis.leader.term)
    before = client.dump(on_redis.keys.job)
    Reopenings(job.root, on_redis.registry, lambda *_: None).resume(on_redis.job_id, accept_changed_inputs=False)
    assert before is not None
    client.restore(on_redis.keys.job, 0, before, replace=True)
    client.zrem(ACTIVE_JOBS, on_redis.job_id)


def test_a_resume_that_redis_has_forgotten_is_done_all_the_same(led: Callable[..., Led]) -> None:
    job = led(1, state=JobState.FAILED)
    forget_the_reopening(job)
    Master(MasterSettings(root=job.root, redis_url=job.url)).check()
    assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.QUEUED
    assert job.on_redis.registry.active_jobs() == [job.on_redis.job_id]
    assert job.folder.generation() == 1


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


def test_a_changed_input_whose_name_is_no_utf_8_is_told(led: Callable[..., Led]) -> None:
    job = led(0, state=JobState.FAILED)
    manifest = ManifestWriter(job.folder.path, 1)
    manifest.add(encode_files([(os.fsencode(job.root / "inputs"), [b"b\xff"])], 1), 1)
    manifest.close(order="sorted")
    job.folder.conclude(
        JobResult(job_id=job.on_redis.job_id, state=JobState.FAILED, started=1.0, ended=2.0, progress=Progress())
    )
    job.folder.reopen(Reopening(generation=1, at=1.0, retry_failed=False))
    job.on_redis.force(JobState.QUEUED)
    job.run_leader()
    failure = job.result().failure
    assert failure is not None
    assert (failure.code, "b\\udcff is gone" in failure.summary) == ("INPUTS_CHANGED", True)
