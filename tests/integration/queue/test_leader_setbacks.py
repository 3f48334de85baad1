"""Leaders that can't go on: a disk that is full, a volume that is away, an input that can't be read, a bug."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from parallelrun_core.folder.decisions import DecisionWriter
from parallelrun_core.folder.manifest import ManifestWriter
from parallelrun_core.store.outcome_stream import Concatenated, report_concatenated
from parallelrun_core.wire.message import encode_files
from parallelrun_core.wire.states import JobState
from parallelrun_master.leader import leader as leader_module
from parallelrun_master.policy import concatenation, setbacks
from parallelrun_master.policy.stages import Stage
from parallelrun_master.publishing.publisher import Publisher
from tests.unit.core.factories import outcome

if TYPE_CHECKING:
    pass

from tests.integration.queue.job_context import PATIENCE_S, Led, wait_until

pytestmark = [
    pytest.mark.integration,
    # A leader has a process of its own, which ends with it and so closes its files.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next leader may try at once."""
    monkeypatch.setattr(setbacks, "LONGEST_PAUSE_S", 0.001)


@pytest.mark.usefixtures("no_pauses")
def test_a_volume_that_comes_back_costs_no_more_than_time(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not blamed on the input either."""
    errors = [errno.ESTALE, errno.EROFS, errno.ETIMEDOUT, errno.EIO] * 2
    job, sync, away = led(3), DecisionWriter.sync, errors.copy()

    def fails(writer: DecisionWriter) -> None:
        if away:
            raise OSError(number := away.pop(0), os.strerror(number))
        sync(writer)

    monkeypatch.setattr(DecisionWriter, "sync", fails)
    agent = threading.Thread(target=job.work)
    agent.start()
    for _ in range(9):
        assert wait_until(lambda: not job.on_redis.registry.has_leader(job.on_redis.job_id))
        job.leader().run()
    agent.join(PATIENCE_S)
    assert (job.result().state, job.result().progress.done) == (JobState.COMPLETED, 3)
    told = [json.loads(data) for event, data in job.on_redis.events()
            if event == "error"]  # fmt: skip
    assert [each["message"] for each in told] == [f"[Errno {number}] {os.strerror(number)}" for number in errors]


@pytest.mark.usefixtures("no_pauses")
def test_a_volume_that_does_not_come_back_fails_the_job(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(*_: object) -> None:
        raise OSError(errno.ESTALE, "Stale file handle", "/data/decisions.1")

    job = led(1)
    monkeypatch.setattr(leader_module, "Reports", stale)
    for _ in range(setbacks.TROUBLE.most or 0):
        assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.QUEUED
        assert wait_until(lambda: not job.on_redis.registry.has_leader(job.on_redis.job_id))
        job.leader().run()
    failure = job.on_redis.registry.status(job.on_redis.job_id).failure
    assert failure is not None
    assert failure.code == "MASTER_ERROR"
    assert "30 times in a row: [Errno 116] Stale file handle: '/data/decisions.1'" in failure.summary


def test_between_leaders_whose_disk_is_full_there_are_pauses_that_grow_and_no_end(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    job, pauses = led(1), list[int]()
    monkeypatch.setattr(leader_module, "Reports", full)
    for _ in range(40):
        job.leader().run()
        pauses.append(job.on_redis.redis.pttl(job.on_redis.keys.leader))
        job.on_redis.redis.delete(job.on_redis.keys.leader)
    assert all(pause <= 1000 * most for pause, most in zip(pauses, (1, 2, 4, 8, 16), strict=False))
    assert all(0 < pause <= 30_000 for pause in pauses[5:])
    assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.QUEUED


@pytest.mark.usefixtures("no_pauses")
def test_crashes_fail_a_job_only_in_a_row_without_anything_durable_in_between(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    def crashes(*_: object) -> None:
        raise ValueError("a bug")

    def crash() -> None:
        assert wait_until(lambda: not job.on_redis.registry.has_leader(job.on_redis.job_id))
        leader = job.leader()
        with pytest.raises(ValueError, match="a bug"):
            leader.run()
        assert leader.stage is Stage.SET_BACK

    monkeypatch.setattr(Publisher, "step", crashes)
    job = led(0)
    manifest = ManifestWriter(job.folder.path, 1)
    for _ in range(5):
        manifest.add(encode_files([(b"/in", [b"f"])], 1), 1)
    manifest.close(order="sorted")  # so that no leader lists more than the one before, which would count
    crash()
    crash()
    writer = DecisionWriter(job.folder.path, 7)  # a leader that had more luck
    writer.add([outcome(0)])
    writer.sync()
    writer.close()
    for _ in range(2):
        crash()
        assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.PROCESSING
    crash()
    failure = job.on_redis.registry.status(job.on_redis.job_id).failure
    assert failure is not None
    assert (failure.code, failure.summary) == ("MASTER_ERROR", "The master failed 3 times: ValueError: a bug")


@pytest.mark.usefixtures("no_pauses")
def test_an_input_that_can_never_be_read_fails_the_job_by_its_name(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    job, open_file = led(1), os.open

    def bad_sector(path: Any, *how: Any, **more: Any) -> int:
        if path == str(job.root / "inputs"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), os.fsdecode(path))
        return open_file(path, *how, **more)

    monkeypatch.setattr(os, "open", bad_sector)
    for leaders in range(20):  # noqa: B007 - counted
        assert wait_until(lambda: not job.on_redis.registry.has_leader(job.on_redis.job_id))
        job.leader().run()
        if job.folder.result() is not None:
            break
    failure = job.result().failure
    assert failure is not None
    assert (failure.code, leaders) == ("INPUT_UNREADABLE", setbacks.INPUT_TROUBLE.most)
    assert f"Input/output error: '{job.root / 'inputs'}'" in failure.summary


def test_an_output_that_can_never_be_put_together_for_its_disk_fails_the_job(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_AGAIN_S", "_GONE_S", "_FIRST_PAUSE_S"):
        monkeypatch.setattr(concatenation, name, 0.001)
    job = led(1, state=JobState.FINALIZING, output_action="append_row")
    on_redis, problem = job.on_redis, "The output can't be put together: [Errno 5] Input/output error"
    on_redis.redis.xadd(on_redis.keys.outcomes, {"state": "finalizing"})
    thread = threading.Thread(target=job.leader().run)
    thread.start()
    told = 0
    while thread.is_alive() and told < 1000:
        report_concatenated(on_redis.redis, on_redis.job_id, Concatenated("", 0, "", problem, is_postponed=True))
        told += 1
        thread.join(0.02)
    thread.join(PATIENCE_S)
    failure = job.result().failure
    assert failure is not None
    assert (failure.code, failure.summary) == ("CONCATENATION_FAILED", problem)
