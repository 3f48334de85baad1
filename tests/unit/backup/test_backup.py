"""Backups bring everything back, and each kind of damage is found."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import msgspec
import pytest

from parallelrun.cli.app import run as command_line
from parallelrun_core.assets.catalog import Catalog
from parallelrun_core.backup.copying import back_up, backup_of, data_of, restore
from parallelrun_core.backup.verifying import Verification
from parallelrun_core.errors import Conflict, InvalidInput
from parallelrun_core.folder.records import JobResult
from parallelrun_core.retention.rules import Rules
from parallelrun_core.retention.sweep import locked
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from tests.damage.cases import flip
from tests.golden.opened import opened
from tests.unit.retention.roots import Root

DAMAGED = ("jobs/*/job.json", "jobs/*/manifest.1", "jobs/*/decisions.1", "jobs/*/parts/*", "code/*/entry.py",
           "assets/data/rows/versions/1.json")  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root folder with a job that an earlier release has left half done, and a version of an asset."""
    path = tmp_path / "root"
    opened("v1", path)
    Catalog(path).add("data", "rows", {"type": "uri_file", "path": "/data"})
    return path


def files_of(root: Path) -> dict[str, bytes]:
    """The files below a folder, without those that only sweeps need."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and "retention" not in path.parts
    }


def test_verify_finds_nothing_in_a_root_folder_that_is_whole(root: Path) -> None:
    verification = Verification(root).run()
    assert verification.findings == []
    assert verification.segments == 2
    assert verification.snapshots == 1
    assert verification.logs >= 2


@pytest.mark.parametrize("pattern", DAMAGED)
def test_verify_finds_what_was_changed(root: Path, pattern: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = max(root.glob(pattern), key=lambda each: each.stat().st_size)
    path.chmod(0o600)
    flip(path)
    assert command_line(["admin", "verify", str(root)]) == 3
    assert str(path.relative_to(root)).removesuffix("/entry.py") in capsys.readouterr().out
    flip(path)
    assert command_line(["admin", "verify", str(root)]) == 0


@pytest.mark.parametrize("pattern", ["jobs/*/job.json", "jobs/*/parts/*", "code/*/entry.py"])
def test_verify_finds_what_is_gone(root: Path, pattern: str) -> None:
    (path,) = root.glob(pattern)
    path.unlink()
    assert Verification(root).run().findings


def test_verify_reads_the_output_of_a_backup_and_not_that_of_the_cluster(tmp_path: Path) -> None:
    cluster = Root(tmp_path / "root")
    job = cluster.job(state=None)
    output = cluster.folder(job).outputs / "rows.txt"
    digest = hashlib.sha256(output.read_bytes()).hexdigest()
    result = JobResult(job_id=job, state=JobState.COMPLETED, started=1.0, ended=2.0, progress=Progress())
    cluster.folder(job).conclude(msgspec.structs.replace(result, output=str(output), output_sha256=digest))
    copy = tmp_path / "copy"
    shutil.copytree(cluster.path, copy)
    copied = copy / output.relative_to(cluster.path)
    assert not any(finding.path.endswith("rows.txt") for finding in Verification(copy).run().findings)
    flip(copied)
    (finding,) = [each for each in Verification(copy).run().findings if each.path.endswith("rows.txt")]
    assert finding.problem == "the output is not what the job has made"
    copied.unlink()
    (finding,) = [each for each in Verification(copy).run().findings if each.path.endswith("rows.txt")]
    assert finding.problem == "the output is gone"


def test_a_backup_is_brought_up_to_date_and_brings_everything_back(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "backup"
    first = back_up(root, target)
    assert first.copied == first.files
    assert files_of(target / "root") == files_of(root)
    Catalog(root).add("data", "rows", {"type": "uri_file", "path": "/more"})
    (root / "jobs" / "gone").mkdir()
    (root / "jobs" / "gone" / "file").write_text("")
    second = back_up(root, target)
    assert 0 < second.copied < second.files
    again = tmp_path / "again"
    restore(target, again)
    assert files_of(again) == {name: data for name, data in files_of(root).items() if name != "jobs/gone/file"}
    assert Verification(again).run().findings == []
    (root / "assets" / "data" / "rows" / "versions" / "2.json").unlink()
    back_up(root, target)
    assert files_of(target / "root").keys() == files_of(root).keys() - {"jobs/gone/file"}


def test_a_backup_that_was_broken_off_is_not_restored(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "backup"
    back_up(root, target)
    (target / "backup.json").unlink()
    assert backup_of(target) is None
    with pytest.raises(InvalidInput, match="not a whole backup"):
        restore(target, tmp_path / "again")
    with pytest.raises(InvalidInput, match="not empty"):
        restore(_made(root, tmp_path / "other"), root)


def _made(root: Path, target: Path) -> Path:
    back_up(root, target)
    return target


def test_a_backup_is_refused_where_it_would_harm(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="below the root folder"):
        back_up(root, root / "backup")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").touch()
    with pytest.raises(InvalidInput, match="neither empty nor"):
        back_up(root, tmp_path / "photos")


def test_the_folder_of_a_cluster_of_this_machine_stands_for_its_root_folder(root: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with pytest.raises(InvalidInput, match="is no root folder of a cluster"):  # never: nothing is damaged
        data_of(home)
    with pytest.raises(InvalidInput, match="is no root folder of a cluster"):
        back_up(home, tmp_path / "backup")
    root.rename(home / "data")
    assert data_of(home) == home / "data"
    assert back_up(home, tmp_path / "backup").root == str(home / "data")
    assert files_of(data_of(tmp_path / "backup")) == files_of(home / "data")
    shutil.rmtree(home)
    (home / "redis").mkdir(parents=True)
    (home / "redis" / "dump.rdb").write_bytes(b"jobs of before")
    with pytest.raises(InvalidInput, match="redis is not empty"):
        restore(tmp_path / "backup", home)
    (home / "redis" / "dump.rdb").unlink()
    assert restore(tmp_path / "backup", home)[0] == home / "data"
    assert files_of(home / "data") == files_of(data_of(tmp_path / "backup"))


def test_a_backup_and_a_sweep_keep_each_other_out(root: Path, tmp_path: Path) -> None:
    Root(root).sweep(Rules())
    with locked(root / "retention") as is_held:
        assert is_held
        with pytest.raises(Conflict, match="sweep"):
            back_up(root, tmp_path / "backup")
