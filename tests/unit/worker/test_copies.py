"""Copies of a mini-batch's files on the node's disk keep their names, and are refused when there is no room."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from parallelrun_worker.mini_batches.copies import Copies


class Usage(NamedTuple):
    free: int


def files(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return [str(folder / name) for name in names]


def test_copies_keep_names_and_folders_and_go_before_the_next_ones_come(tmp_path: Path) -> None:
    paths = files(tmp_path / "in", "a/x.txt", "b/x.txt")
    copies = Copies(str(tmp_path / "here"), workers=2)
    found = copies.take(paths, str(tmp_path / "in"))
    assert found == [str(tmp_path / "here" / "a/x.txt"), str(tmp_path / "here" / "b/x.txt")]
    assert [Path(path).read_text() for path in found] == ["a/x.txt", "b/x.txt"]
    copies.take(paths[1:], str(tmp_path / "in"))
    assert not Path(found[0]).exists()
    copies.remove()
    assert not (tmp_path / "here").exists()


def test_files_from_elsewhere_have_their_whole_path(tmp_path: Path) -> None:
    (path,) = files(tmp_path / "else", "x")
    assert Copies(str(tmp_path / "here"), 1).take([path], "/data") == [f"{tmp_path}/here{path}"]


def test_a_disk_that_cannot_hold_every_workers_mini_batch_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = files(tmp_path / "in", "x" * 100)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(399))
    with pytest.raises(ValueError, match=r"no room for the copies: .* for each of 4 workers"):
        Copies(str(tmp_path / "here"), workers=4).take(paths, "/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(400))
    copies = Copies(str(tmp_path / "here"), workers=4)
    copies.take(paths, "/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100))
    copies.take(paths, "/")  # the others have theirs by now
