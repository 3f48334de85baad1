"""How a node looks for work."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from redis import Redis

from parallelrun_agent import agent
from parallelrun_agent.agent import Agent
from parallelrun_agent.settings import AgentSettings
from parallelrun_core import unreadable
from parallelrun_core.states import JobState


def test_that_a_job_cannot_be_joined_is_said_once_until_that_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(agent, "connect", lambda *_, **__: Redis())  # it connects when it is used
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
    for fd in (node._wake, node._wake_end):
        os.close(fd)
