"""Which jobs a node joins, and which gets its slots."""

from __future__ import annotations

import errno
import gc
import os
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from redis import Redis

from parallelrun_agent.environments.job_python import JobPython
from parallelrun_agent.jobs.node_job import NodeJob
from parallelrun_agent.jobs.work_finder import WorkFinder
from parallelrun_agent.node_context import NodeContext
from parallelrun_agent.policy.worker import Worker
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.staging.place import StagePlace
from parallelrun_agent.workers.gpus import GpuPool
from parallelrun_agent.workers.orphans import Orphans
from parallelrun_core.errors import NotFound
from parallelrun_core.folder import unreadable
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.store.registry import ActiveJob, Registry
from parallelrun_core.wire.states import JobState
from tests.unit.core.factories import open_descriptors


@pytest.fixture(autouse=True)
def no_changed_priorities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "priorities", lambda *_: {})


@pytest.fixture(autouse=True)
def first_to_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "is_first_to_join", lambda *_: True)


def finder_of(root: Path, *, jobs: dict[str, Any] | None = None, **settings: Any) -> WorkFinder:
    all_settings = AgentSettings(root=root, work_dir=root / "work", cache_dir=root / "cache", gpus=0, **settings)
    context = NodeContext(Mock(), Orphans(), GpuPool([]), StagePlace(root / "cache", 0), ProcessSecrets(""))
    return WorkFinder(Redis(), all_settings, context, {} if jobs is None else jobs)  # it connects when it is used


def test_that_a_job_cannot_be_joined_is_said_once_until_that_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    finder = finder_of(tmp_path)
    reported: list[tuple[str, str]] = []
    log = SimpleNamespace(error=lambda what, **more: reported.append((what, more["job_id"])))
    monkeypatch.setattr(unreadable, "logger", lambda: log)
    jobs = [ActiveJob("job_a", JobState.PROCESSING, 3, 0), ActiveJob("job_b", JobState.PROCESSING, 1, 0)]
    monkeypatch.setattr(Registry, "peek", lambda _: jobs)
    for _ in range(3):
        finder.poll(1.0)
    assert reported == [("job_folder_missing", "job_a"), ("job_folder_missing", "job_b")]

    (tmp_path / "jobs" / "job_b").mkdir(parents=True)
    (tmp_path / "jobs" / "job_b" / "job.json").write_text('{"schema": 99}')
    for _ in range(2):
        finder.poll(1.0)
    assert reported[2:] == [("job_too_new", "job_b")]
    for damaged in ("", "[]", '{"job_id": "job_b", "submitted": 1.0, "code": "c", "spec": {"inputs": 5}}'):
        (tmp_path / "jobs" / "job_b" / "job.json").write_text(damaged)
        finder.poll(1.0)
    (tmp_path / "jobs" / "job_b" / "job.json").unlink()
    (tmp_path / "jobs" / "job_b" / "job.json").mkdir()
    finder.poll(1.0)
    assert reported[3:] == [("job_unreadable", "job_b")]

    gone, jobs[:] = jobs[0], jobs[1:]
    finder.poll(1.0)
    jobs.append(gone)
    finder.poll(1.0)
    assert reported[4:] == [("job_folder_missing", "job_a")]


def test_a_job_that_cannot_be_joined_leaves_nothing_open_and_is_tried_again_later(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    finder = finder_of(tmp_path)
    monkeypatch.setattr(Registry, "peek", lambda _: [ActiveJob("job_a", JobState.PROCESSING, 1, 0)])
    reported: list[str] = []
    log = SimpleNamespace(error=lambda what, **more: reported.append(more["reason"]))
    monkeypatch.setattr(unreadable, "logger", lambda: log)
    folder = JobFolder(tmp_path, "job_a")
    spec = {"entry_script": "e.py", "inputs": "/in", "environment": {"pip": ["six"]}}
    folder.create(JobRecord(job_id="job_a", submitted=1.0, code="c", spec=spec))
    gc.collect()  # agents of other tests
    before = open_descriptors()
    tries = 0
    make = JobFolder.record

    def count(of: JobFolder) -> JobRecord:
        nonlocal tries
        tries += 1
        return make(of)

    monkeypatch.setattr(JobFolder, "record", count)
    (folder.logs / "sys").mkdir(parents=True, exist_ok=True)
    (folder.logs / "sys" / "node").write_text("no folder: what is reported of the environment can't be kept")
    for now in (1.0, 1.5, 2.0, 3.0, 4.0):
        finder.poll(now)
    (folder.logs / "sys" / "node").unlink()
    monkeypatch.setattr("os.pipe", raise_too_many_files)
    monkeypatch.setattr(JobPython, "_build", lambda *_: None)
    finder.poll(5.0)
    assert open_descriptors() == before
    assert tries == 5, "not at once again"
    assert len(reported) == 1


def job_on_node(job_id: str, **more: Any) -> SimpleNamespace:
    """A job as the sharing of slots sees it."""
    plain = {
        "job_id": job_id, "owner": "", "account": "", "priority": "normal", "slots_beyond": 0, "waiting": 0,
        "gpus_of_worker": Fraction(1),
        "observed": lambda *_: None, "workers": [], "wanted_workers": lambda _: 0, "end_idle_worker": lambda _: False,
        "resident_bytes": lambda: 0, "apart_count": 0, "awaits_template": lambda _: False,
    }  # fmt: skip
    return SimpleNamespace(**plain | more)


def raise_too_many_files(*_: object) -> int:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_no_more_idle_workers_end_for_another_job_than_it_wants(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Their shutdown() may take its time, and the node looks for work many times a second meanwhile."""
    idle = [Worker(f"process{number:03d}", "", 0.0) for number in range(4)]
    for worker in idle:
        worker.pass_init()

    def end_one(_: float) -> bool:
        worker = next((worker for worker in idle if worker.stage == "ready"), None)
        if worker is not None:
            worker.end(30.0)
        return worker is not None

    jobs: dict[str, Any] = {
        "job_a": job_on_node("job_a", workers=idle, end_idle_worker=end_one),
        "job_b": job_on_node("job_b", wanted_workers=lambda _: 2),
    }
    active = [ActiveJob("job_a", JobState.PROCESSING, 0, 0), ActiveJob("job_b", JobState.PROCESSING, 2, 0)]
    monkeypatch.setattr(Registry, "peek", lambda _: active)
    finder = finder_of(tmp_path, jobs=jobs, slots=4)
    for _ in range(6):
        finder.poll(1.0)
    assert sum(worker.is_to_end for worker in idle) == 2


def test_who_has_no_free_slot_polls_less_often_and_who_has_no_work_for_long_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    busy = Worker("process000", "", 0.0)  # in init()
    jobs: dict[str, Any] = {"job_a": SimpleNamespace(owner="", slots_beyond=0, workers=[busy])}
    finder = finder_of(tmp_path, jobs=jobs, slots=1, poll_seconds=0.05)
    times = [number / 100 for number in range(100, 200)]
    assert sum(map(finder.is_due, times)) == 4, "one in a quarter of a second"
    jobs.clear()
    assert sum(finder.is_due(now + 1) for now in times) == pytest.approx(20, abs=2), "a slot is free"
    assert sum(finder.is_due(now + 10) for now in times) == pytest.approx(5, abs=1), "nothing has come for long"
    monkeypatch.setattr(Registry, "peek", lambda _: [])
    jobs["job_b"] = SimpleNamespace(owner="", slots_beyond=0, workers=[])  # as if it had joined it
    finder.poll(11.0)
    assert finder.wait_s(11.0) == pytest.approx(0.05), "there is work again"
    finder.soon()
    assert finder.wait_s(12.0) == 0.0
    assert finder.is_due(12.0)


def test_the_record_of_a_job_of_another_compute_is_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jobs = [ActiveJob("job_a", JobState.PROCESSING, 3, 0), ActiveJob("job_b", JobState.PROCESSING, 3, 0)]
    for job_id, compute in (("job_a", "other"), ("job_b", "")):
        spec = {"entry_script": "e.py", "inputs": "/in", "compute": compute}
        JobFolder(tmp_path, job_id).create(JobRecord(job_id=job_id, submitted=1.0, code="c", spec=spec))
    read: list[str] = []
    record_of = JobFolder.record

    def counted(folder: JobFolder) -> JobRecord:
        read.append(folder.job_id)
        return record_of(folder)

    monkeypatch.setattr(JobFolder, "record", counted)
    monkeypatch.setattr(Registry, "peek", lambda _: list(jobs))
    made: list[str] = []

    def job_without_a_queue(job: NodeJob, _now: float) -> None:
        made.append(job.job_id)
        job.close()
        raise NotFound(job.job_id)

    monkeypatch.setattr(NodeJob, "turn", job_without_a_queue)
    finder = finder_of(tmp_path, compute="mine")
    with suppress(NotFound):
        for _ in range(3):
            finder.poll(1.0)
    assert made == [], "it belongs to another compute"
    assert read == ["job_a", "job_b"]
    gone = jobs.pop(0)
    finder.poll(2.0)
    jobs.append(gone)
    finder.poll(3.0)
    assert read == ["job_a", "job_b", "job_a"], "who has left the list is forgotten"
