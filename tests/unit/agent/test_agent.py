"""How a node looks for work."""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from redis import Redis

from parallelrun_agent import agent
from parallelrun_agent.agent import Agent
from parallelrun_agent.environments.job_python import JobPython
from parallelrun_agent.policy.worker import Worker
from parallelrun_agent.settings import AgentSettings
from parallelrun_core.folder import unreadable
from parallelrun_core.folder.job_folder import JobFolder, JobRecord
from parallelrun_core.states import JobState
from tests.unit.core.factories import open_descriptors


def test_that_a_job_cannot_be_joined_is_said_once_until_that_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(agent, "connect_directly", lambda *_, **__: Redis())  # it connects when it is used
    node = Agent(AgentSettings(root=tmp_path, work_dir=tmp_path / "work", gpus=0))
    told: list[tuple[str, str]] = []
    log = SimpleNamespace(error=lambda what, **more: told.append((what, more["job_id"])))
    monkeypatch.setattr(unreadable, "logger", lambda: log)
    jobs = [("job_a", JobState.PROCESSING, 3), ("job_b", JobState.PROCESSING, 1)]
    monkeypatch.setattr(node._registry, "peek", lambda: jobs)
    for _ in range(3):
        node._look_for_work(1.0)
    assert told == [("job_folder_missing", "job_a"), ("job_folder_missing", "job_b")]

    (tmp_path / "jobs" / "job_b").mkdir(parents=True)
    (tmp_path / "jobs" / "job_b" / "job.json").write_text('{"schema": 99}')
    for _ in range(2):
        node._look_for_work(1.0)
    assert told[2:] == [("job_too_new", "job_b")]
    for damaged in ("", "[]", '{"job_id": "job_b", "submitted": 1.0, "code": "c", "spec": {"inputs": 5}}'):
        (tmp_path / "jobs" / "job_b" / "job.json").write_text(damaged)
        node._look_for_work(1.0)
    (tmp_path / "jobs" / "job_b" / "job.json").unlink()
    (tmp_path / "jobs" / "job_b" / "job.json").mkdir()
    node._look_for_work(1.0)
    assert told[3:] == [("job_unreadable", "job_b")]

    gone, jobs[:] = jobs[0], jobs[1:]
    node._look_for_work(1.0)
    jobs.append(gone)
    node._look_for_work(1.0)
    assert told[4:] == [("job_folder_missing", "job_a")]
    node._loop.close()


def test_a_job_that_cannot_be_joined_leaves_nothing_open_and_is_tried_again_later(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(agent, "connect_directly", lambda *_, **__: Redis())
    node = Agent(AgentSettings(root=tmp_path, work_dir=tmp_path / "work", cache_dir=tmp_path / "cache", gpus=0))
    monkeypatch.setattr(node._registry, "peek", lambda: [("job_a", JobState.PROCESSING, 1)])
    told: list[str] = []
    log = SimpleNamespace(error=lambda what, **more: told.append(more["reason"]))
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
    (folder.logs / "sys" / "node").write_text("no folder: what is told of the environment can't be kept")
    for now in (1.0, 1.5, 2.0, 3.0, 4.0):
        node._look_for_work(now)
    (folder.logs / "sys" / "node").unlink()
    monkeypatch.setattr("os.pipe", raise_too_many_files)
    monkeypatch.setattr(JobPython, "_build", lambda *_: None)
    node._look_for_work(5.0)
    assert open_descriptors() == before
    assert tries == 5, "not at once again"
    assert len(told) == 1
    node._loop.close()


def raise_too_many_files(*_: object) -> int:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_no_more_idle_workers_end_for_another_job_than_it_wants(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Their shutdown() may take its time, and the node looks for work many times a second meanwhile."""
    monkeypatch.setattr(agent, "connect_directly", lambda *_, **__: Redis())
    node = Agent(AgentSettings(root=tmp_path, work_dir=tmp_path / "work", slots=4, gpus=0))
    idle = [Worker(f"process{number:03d}", "", 0.0) for number in range(4)]
    for worker in idle:
        worker.pass_init()

    def end_one(_: float) -> bool:
        worker = next((worker for worker in idle if worker.stage == "ready"), None)
        if worker is not None:
            worker.end(30.0)
        return worker is not None

    jobs = {
        "job_a": SimpleNamespace(observed=lambda *_: None, workers=idle, end_idle_worker=end_one),
        "job_b": SimpleNamespace(observed=lambda *_: None, workers=[], wanted_workers=lambda _: 2),
    }
    monkeypatch.setattr(node, "_jobs", jobs)
    monkeypatch.setattr(
        node._registry, "peek", lambda: [("job_a", JobState.PROCESSING, 0), ("job_b", JobState.PROCESSING, 2)]
    )
    for _ in range(6):
        node._look_for_work(1.0)
    assert sum(worker.is_to_end for worker in idle) == 2
    node._loop.close()
