"""The moment at which a job is accepted: all of it is on the disk, and it is there once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from parallelrun_api.submission.checks import PathChecks
from parallelrun_api.submission.submissions import Submissions
from parallelrun_api.submission.upload import SubmittedForm
from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.intake.reading import read_job
from parallelrun_core.storage.path_rule import Places
from tests.integration.api.conftest import Site
from tests.unit.core.factories import noted_syncs

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration


def submissions(root: Path, redis: Redis) -> Submissions:
    root.mkdir(exist_ok=True)
    checks = PathChecks(root=root, places=Places(roots=["/"]))
    return Submissions(root, ComputeCatalog(root), checks, redis)


def upload(site: Site) -> SubmittedForm:
    return SubmittedForm(reading=read_job(site.spec()), code=None, sha256="0" * 64)


def test_what_is_accepted_is_on_the_disk_with_its_code(
    tmp_path: Path, site: Site, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = noted_syncs(monkeypatch)
    root = tmp_path / "root"
    job_id = submissions(root, redis).accept(upload(site), "").job_id
    must = [root / "jobs" / job_id, root / "jobs" / job_id / "job.json", root / "jobs", *(root / "code").rglob("*")]
    assert {str(path) for path in must if path.stat().st_ino not in synced} == set()


def test_code_that_is_stored_already_is_durable_for_the_next_job_and_not_copied(
    tmp_path: Path, site: Site, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who stored it may have been killed before its name was durable."""
    root = tmp_path / "root"
    accepting = submissions(root, redis)
    accepting.accept(upload(site), "")
    listed = next((root / "code").glob("*.files"))
    os.utime(listed, (0, 0))
    inode = listed.stat().st_ino
    synced = noted_syncs(monkeypatch)
    accepting.accept(upload(site), "")
    assert (root / "code").stat().st_ino in synced
    assert listed.stat().st_ino == inode
    assert listed.stat().st_mtime > 0  # a sweep takes it for a new one


def test_code_that_is_stored_and_damaged_is_stored_again(tmp_path: Path, site: Site, redis: Redis) -> None:
    root = tmp_path / "root"
    accepting = submissions(root, redis)
    accepting.accept(upload(site), "")
    (script,) = (root / "code").rglob("main.py")
    script.chmod(0o644)
    script.write_text("damaged")
    accepting.accept(upload(site), "")
    assert script.read_text() == (site.code / "main.py").read_text()


def test_the_same_key_makes_one_job_whoever_asks(tmp_path: Path, site: Site, redis: Redis) -> None:
    root = tmp_path / "root"
    ids = {submissions(root, redis).accept(upload(site), "key").job_id for _ in range(3)}
    assert len(ids) == 1
    assert {path.name for path in (root / "jobs").iterdir()} == ids


def test_a_job_that_another_request_has_made_is_durable_when_it_is_answered(
    tmp_path: Path, site: Site, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That one may have been killed just then."""
    root = tmp_path / "root"
    job_id = submissions(root, redis).accept(upload(site), "key").job_id
    synced = noted_syncs(monkeypatch)
    assert submissions(root, redis).accept(upload(site), "key").job_id == job_id
    assert {(root / "jobs").stat().st_ino, (root / "jobs" / job_id).stat().st_ino} <= synced
