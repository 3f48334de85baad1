"""What nobody needs any more is out of the way at once, and gone soon."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from parallelrun_agent.workers.trash import throw_away


def test_nobody_waits_for_the_removal_of_what_a_script_has_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    may_go_on = threading.Event()
    remove = shutil.rmtree

    def slow(path: Path, *, ignore_errors: bool) -> None:
        assert may_go_on.wait(20)
        remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", slow)
    folder = tmp_path / "job" / "process000"
    for number in range(1, 3):  # the name can be used again meanwhile
        (folder / "deep").mkdir(parents=True)
        (folder / "deep" / "file").touch()
        throw_away(folder, tmp_path)
        assert not folder.exists()
        assert len(list(tmp_path.glob(".trash-*/deep/file"))) == number
    may_go_on.set()
    for thread in threading.enumerate():
        if thread.name == "trash":
            thread.join(20)
    assert list(tmp_path.iterdir()) == [tmp_path / "job"]


def test_what_can_not_be_moved_aside_is_removed_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(Path, "rename", fail)
    (tmp_path / "job" / "deep").mkdir(parents=True)
    throw_away(tmp_path / "job", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_empty_or_not_there_takes_no_more_than_a_look(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "missing"):
        throw_away(tmp_path / name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_where_no_thread_can_be_started_it_is_removed_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a script has left running may have used up all the processes that a container may have."""

    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    (tmp_path / "job" / "deep").mkdir(parents=True)
    throw_away(tmp_path / "job", tmp_path)
    assert list(tmp_path.iterdir()) == []
