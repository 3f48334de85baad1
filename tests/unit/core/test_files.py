"""Files with two names, or copies of them, and files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from parallelrun_core.durable_files import link_or_copy, replace_file, write_once
from tests.unit.core.factories import names_in, noted_syncs


def refuse_links(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def link(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", link)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(b"rows\n")
    path.chmod(0o640)
    os.utime(path, (1.0, 2.0))
    return path


def test_a_file_has_two_names_and_is_there_once(source: Path, tmp_path: Path) -> None:
    link_or_copy(source, tmp_path / "target")
    assert (tmp_path / "target").samefile(source)


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EXDEV, errno.ENOSYS])
def test_without_links_it_is_copied_as_it_is(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    refuse_links(monkeypatch, number)
    link_or_copy(source, tmp_path / "target")
    copy = tmp_path / "target"
    assert (copy.read_bytes(), copy.stat().st_nlink) == (b"rows\n", 1)
    assert (copy.stat().st_mode, copy.stat().st_mtime) == (source.stat().st_mode, source.stat().st_mtime)


def test_a_link_stays_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "source").symlink_to("nowhere")
    link_or_copy(tmp_path / "source", tmp_path / "linked")
    refuse_links(monkeypatch, errno.EXDEV)
    link_or_copy(tmp_path / "source", tmp_path / "copied")
    assert {str((tmp_path / name).readlink()) for name in ("linked", "copied")} == {"nowhere"}


def test_any_other_error_is_told(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "target").touch()
    with pytest.raises(FileExistsError):
        link_or_copy(source, tmp_path / "target")
    refuse_links(monkeypatch, errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        link_or_copy(source, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_file_is_replaced_whole_with_its_mode_and_nothing_is_left_beside(tmp_path: Path) -> None:
    replace_file(tmp_path / "file", b"first")
    replace_file(tmp_path / "file", b"second", mode=0o600)
    assert (tmp_path / "file").read_bytes() == b"second"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(tmp_path / "folder", b"third")
    assert names_in(tmp_path) == ["file", "folder"]


def test_the_first_to_write_wins_and_nothing_is_left_beside(tmp_path: Path) -> None:
    write_once(tmp_path / "file", b"first")
    with pytest.raises(FileExistsError):
        write_once(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"first"
    assert names_in(tmp_path) == ["file"]


def test_a_name_that_another_has_made_is_durable_when_one_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other may have been killed just then."""
    (tmp_path / "once").write_bytes(b"first")
    synced = noted_syncs(monkeypatch)
    with pytest.raises(FileExistsError):
        write_once(tmp_path / "once", b"second")
    assert tmp_path.stat().st_ino in synced
    assert names_in(tmp_path) == ["once"]
