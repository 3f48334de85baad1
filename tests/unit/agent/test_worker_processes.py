"""A worker that can't be started leaves nothing behind."""

from __future__ import annotations

import errno
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock

import pytest

from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_agent.workers.gpus import VARIABLE, GpuPool
from parallelrun_agent.workers.plans import PlanMaker, WorkerPlan
from parallelrun_agent.workers.processes import WorkerProcesses
from parallelrun_agent.workers.worker_process import WorkerProcess
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.spec import JobSpec


@pytest.mark.parametrize("has_folders", [True, False])
def test_a_worker_that_cannot_be_started_takes_no_gpu_with_it(
    has_folders: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    causes = [errno.ENOSPC, errno.EAGAIN, errno.ENOSPC, errno.EAGAIN]
    pending = iter(causes)

    def cannot() -> None:
        raise OSError(next(pending), "it can't be started")

    def start(plan: WorkerPlan, _fork: object) -> None:
        given.append(plan.environment[VARIABLE])
        plan.working_folder.mkdir(parents=True)
        cannot()

    monkeypatch.setattr(WorkerProcess, "start", start)
    if not has_folders:
        monkeypatch.setattr(WorkerUser, "make", lambda *_: cannot())
    outputs = {} if has_folders else {"outputs": {"files": {"path": "s3://bucket/files"}}}
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", **outputs})
    folder = JobFolder(tmp_path, "job_00000000000000000000")
    record = JobRecord(job_id=folder.job_id, submitted=1.0, code="c", spec={})
    settings = AgentSettings(root=tmp_path, work_dir=tmp_path / "work", node="n1")
    pool = GpuPool(["0", "1"])
    plans = PlanMaker(folder, record, spec, settings, pool, secrets=ProcessSecrets(""))
    machine = Mock()
    of_session = WorkerProcesses(
        "n1-00000000", plans, Mock(), committer=Mock(), reports=Mock(), events=nullcontext(machine)
    )
    for _ in causes:
        of_session.spawn()
    assert given == ["0"] * len(causes) * has_folders
    assert (machine.disk_failed.call_count, machine.init_failed.call_count) == (2, 2)
    assert not list((tmp_path / "work").rglob("process*"))
    assert pool.take("another")[VARIABLE] == "0"
