"""The zip with the user's code."""

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from parallelrun.errors import InvalidInput
from parallelrun.packaging import code as package_code
from parallelrun.packaging.code import zip_folder
from parallelrun_api.settings import ApiSettings
from parallelrun_api.submission.upload import MAX_SPEC_BYTES
from parallelrun_core.code import snapshots


def names_in(folder: Path) -> list[str]:
    with zip_folder(folder) as packed, zipfile.ZipFile(packed) as archive:
        return archive.namelist()


def test_everything_below_the_folder_goes_in_without_what_tools_leave(tmp_path: Path) -> None:
    for name in ("score.py", "lib/deep/util.py", "__pycache__/score.pyc", ".git/config", ".venv/bin/python"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)

    assert names_in(tmp_path) == ["score.py", "lib/deep/util.py"]


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    for folder, time in (("a", 1_000_000_000), ("b", 1_700_000_000)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "score.py").write_text("def run(mini_batch): ...")
        os.utime(tmp_path / folder / "score.py", (time, time))

    with zip_folder(tmp_path / "a") as first, zip_folder(tmp_path / "b") as second:
        assert first.read() == second.read()


def test_the_server_takes_what_was_packed(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "score.py").write_text("def run(mini_batch): ...")
    (code / "tool.sh").write_text("#!/bin/sh")
    (code / "tool.sh").chmod(0o755)
    # Compressed, the server would take this for a zip bomb.
    (code / "zeros.bin").write_bytes(bytes(4 << 20))
    (code / "link.py").symlink_to("score.py")
    (code / "lib").mkdir()
    (code / "lib" / "util.py").write_text("x = 1")
    (code / "alias").symlink_to("lib")
    (code / ".gitignore").write_text("*.log\n")
    (code / "noise.log").touch()

    with zip_folder(code) as packed:
        name = snapshots.snapshot_zip(packed, tmp_path / "store")

    assert name == snapshots.snapshot_folder(code, tmp_path / "store")
    assert (tmp_path / "store" / name / "alias" / "util.py").is_file()
    assert (tmp_path / "store" / name / "tool.sh").stat().st_mode & 0o100


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir], ids=["file", "folder"])
def test_a_link_to_the_outside_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "code").mkdir()
    make(tmp_path / "secret")
    (tmp_path / "code" / "secret").symlink_to(tmp_path / "secret")

    with pytest.raises(InvalidInput, match="secret is a link to outside"):
        zip_folder(tmp_path / "code")


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no folder"):
        zip_folder(tmp_path / "nowhere")


@pytest.mark.parametrize("limit", ["files", "bytes", "MAX_ZIP_BYTES"])
def test_a_folder_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "b.py").write_text("2")
    if limit == "MAX_ZIP_BYTES":
        monkeypatch.setattr(package_code, limit, 1)
    else:
        monkeypatch.setattr(package_code, "_CODE", snapshots.SnapshotLimits(**{**vars(package_code._CODE), limit: 1}))

    with pytest.raises(InvalidInput, match="holds more than") as refused:
        zip_folder(tmp_path)
    assert ".amlignore" in refused.value.problems[0].hint


def test_a_folder_that_may_be_stored_may_be_sent_as_a_zip_that_the_api_takes() -> None:
    assert snapshots.MAX_ZIP_BYTES >= snapshots.MAX_BYTES + 800 * snapshots.MAX_FILES  # with their names
    assert ApiSettings().max_body_bytes > snapshots.MAX_ZIP_BYTES + MAX_SPEC_BYTES
