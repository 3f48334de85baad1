"""What workers that are users of their own may write of their run of MLflow."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_agent.workers.job_tracking import _share
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.tracking.mlflow_folder import run_in

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
USER = WorkerUser(23_456)


def test_workers_may_write_into_the_run_of_their_job(tmp_path: Path) -> None:
    _, run = run_in(tmp_path, "job", "petals", "score")
    _share(run, USER)
    assert {path.lstat().st_gid for path in (run, *run.rglob("*"))} == {USER.uid}
    assert stat.S_IMODE((run / "meta.yaml").stat().st_mode) == 0o660
    assert run.parent.stat().st_gid != USER.uid


def test_second_names_of_other_files_are_not_shared(tmp_path: Path) -> None:
    _, run = run_in(tmp_path / "runs", "job", "petals", "score")
    secret = tmp_path / "secret"
    secret.write_text("s3")
    (run / "meta.yaml").unlink()
    for name in ("meta.yaml", "params/more"):
        (run / name).hardlink_to(secret)
    before = secret.stat()
    _share(run, USER)
    assert secret.stat() == before


def test_no_link_is_followed_to_what_is_shared(tmp_path: Path) -> None:
    _, run = run_in(tmp_path / "runs", "job", "petals", "score")
    secret = tmp_path / "mlflow.runName"
    secret.write_text("s3")
    shutil.rmtree(run / "tags")
    (run / "tags").symlink_to(tmp_path)
    before = secret.stat()
    with pytest.raises((OSError, ParallelRunError)):
        _share(run, USER)
    assert secret.stat() == before
