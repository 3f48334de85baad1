"""Stored code is what its name says, or it is named as damaged; what doesn't belong to it is removed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from parallelrun_core.code.snapshots import snapshot_folder
from parallelrun_core.code.stored import DamagedCode, check_snapshot

FILES = {"entry.py": "x = 1\n", "lib/deeper/util.py": "y = 2\n", "a b\nc.txt": "odd", "lib.py": "", "run.sh": "#!"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "run.sh").chmod(0o755)
    return folder


@pytest.fixture
def stored(source: Path, tmp_path: Path) -> Path:
    return tmp_path / "code" / snapshot_folder(source, tmp_path / "code")


def texts(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_code_that_nobody_has_touched_is_taken_with_and_without_its_list(stored: Path) -> None:
    check_snapshot(stored)
    stored.with_name(f"{stored.name}.files").unlink()  # as an earlier release stores it
    check_snapshot(stored)


def changed(path: Path) -> None:
    path.chmod(0o644)
    path.write_text("evil")


def removed(path: Path) -> Path:
    path.unlink()
    return path


DAMAGE: dict[str, Callable[[Path], object]] = {
    "changed": lambda code: changed(code / "entry.py"),
    "changed below": lambda code: changed(code / "lib" / "deeper" / "util.py"),
    "removed": lambda code: (code / "entry.py").unlink(),
    "emptied": shutil.rmtree,
    "executable": lambda code: (code / "entry.py").chmod(0o755),
    "link": lambda code: removed(code / "lib.py").symlink_to("entry.py"),
    "folder": lambda code: removed(code / "lib.py").mkdir(),
    "pipe": lambda code: os.mkfifo(removed(code / "lib.py")),
}


@pytest.mark.parametrize("has_list", [True, False])
@pytest.mark.parametrize("how", [each for each in DAMAGE if each != "emptied"])
def test_what_was_done_to_it_is_noticed(how: str, has_list: bool, stored: Path) -> None:
    if not has_list:
        stored.with_name(f"{stored.name}.files").unlink()
    DAMAGE[how](stored)
    with pytest.raises(DamagedCode, match="not what was submitted"):
        check_snapshot(stored)


@pytest.mark.parametrize("how", DAMAGE)
def test_the_same_code_again_replaces_what_was_damaged(
    how: str, stored: Path, source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    DAMAGE[how](stored)
    assert snapshot_folder(source, stored.parent) == stored.name
    assert texts(stored) == FILES
    check_snapshot(stored)
    assert sorted(path.name for path in stored.parent.iterdir()) == [stored.name, f"{stored.name}.files"]


def test_what_somebody_has_put_beside_it_is_removed(stored: Path) -> None:
    (stored / "__pycache__").mkdir()
    (stored / "__pycache__" / "lib.cpython-311.pyc").write_bytes(b"evil")
    (stored / "lib" / "json.py").write_text("evil")
    (stored / "other").symlink_to("/")
    check_snapshot(stored)
    assert texts(stored) == FILES
    assert not (stored / "other").is_symlink()
    assert not (stored / "__pycache__").exists()


def test_a_list_that_was_changed_with_the_code_is_not_believed(stored: Path) -> None:
    listed = stored.with_name(f"{stored.name}.files")
    changed(stored / "entry.py")
    listed.write_text(listed.read_text().replace("entry.py", "other.py"))
    with pytest.raises(DamagedCode, match="another hash"):
        check_snapshot(stored)
    assert set(texts(stored)) == set(FILES), "and nothing of it was removed"
