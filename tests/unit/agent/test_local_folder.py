"""The agent's own folder: it belongs to one agent, and what is not needed any more is gone soon."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from parallelrun_agent.workers.local_folder import claim_folder, throw_away


def test_the_agents_folder_is_private_and_empty(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / "job" / "process000").mkdir(parents=True)
    (folder / "job" / "process000" / "x").touch()
    (folder / "file").touch()
    (folder / "link").symlink_to(tmp_path)
    folder.chmod(0o777)
    (tmp_path / "precious").touch()
    os.close(claim_folder(folder))
    assert list(folder.iterdir()) == []
    assert (folder.stat().st_mode & 0o077) == 0
    assert (tmp_path / "precious").exists()


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "precious").touch()
    (tmp_path / "work").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="another user"):
        claim_folder(tmp_path / "work")
    assert (tmp_path / "elsewhere" / "precious").exists()


def test_a_folder_in_which_an_agent_is_at_work_is_not_emptied_by_another(tmp_path: Path) -> None:
    first = claim_folder(tmp_path / "work")
    (tmp_path / "work" / "job_1").mkdir()
    with pytest.raises(OSError, match="another agent works in"):
        claim_folder(tmp_path / "work")
    assert (tmp_path / "work" / "job_1").is_dir()
    os.close(first)
    os.close(claim_folder(tmp_path / "work"))
    assert not (tmp_path / "work" / "job_1").exists()


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
