"""What the committer makes durable, and what it leaves behind when it ends."""

from __future__ import annotations

import errno
import os
import select
import threading
from pathlib import Path
from queue import SimpleQueue

import pytest

from parallelrun_agent.workers.committer import Committer
from tests.unit.core.factories import outcome


def test_a_part_file_is_closed_also_when_its_worker_is_buried_during_the_last_sync(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    syncing, buried = threading.Event(), threading.Event()

    def slow(_: int) -> None:
        syncing.set()
        assert buried.wait(20)

    monkeypatch.setattr(os, "fdatasync", slow)
    wake, wake_end = os.pipe()
    committer = Committer(tmp_path / "journal", sync=True, wake=wake_end, prepare=lambda: None)
    part = os.open(tmp_path / "part", os.O_CREAT | os.O_WRONLY)
    os.write(part, b"0123456789")
    committer.add(outcome(0, length=10), part)
    committer.hurry()
    assert syncing.wait(20)
    committer.close_part(part)
    stopping = threading.Thread(target=committer.stop)
    stopping.start()
    buried.set()
    stopping.join()
    for fd in (wake, wake_end):
        os.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(part)


def test_a_part_file_whose_close_fails_takes_no_later_result_along(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file system on the network may tell of a quota when a file is closed; what was committed has been synced."""
    wake, wake_end = os.pipe()
    committer = Committer(tmp_path / "journal", sync=False, wake=wake_end, prepare=lambda: None)
    part = os.open(tmp_path / "part", os.O_CREAT | os.O_WRONLY)
    close, failed = os.close, threading.Event()

    def fail(fd: int) -> None:
        close(fd)
        if fd == part and not failed.is_set():  # the number may be that of another file later
            failed.set()
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "close", fail)
    committer.close_part(part)
    assert failed.wait(20)
    committer.add(outcome(1, length=0), -1)
    committer.hurry()
    ready, _, _ = select.select([wake], [], [], 20)
    assert ready
    assert [outcome.mini_batch for outcome, _ in committer.durable] == [1]
    committer.stop()
    for fd in (wake, wake_end):
        close(fd)


def test_what_is_added_during_a_sync_shares_the_next_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    syncs: SimpleQueue[threading.Event] = SimpleQueue()

    def wait_for_leave(_: int) -> None:
        leave = threading.Event()
        syncs.put(leave)
        assert leave.wait(20)

    monkeypatch.setattr(os, "fdatasync", wait_for_leave)
    wake, wake_end = os.pipe()
    committer = Committer(tmp_path / "journal", sync=True, wake=wake_end, prepare=lambda: None)
    part = os.open(tmp_path / "part", os.O_CREAT | os.O_WRONLY)
    os.write(part, bytes(50))

    def commit(*numbers: int) -> None:
        for number in numbers:
            committer.add(outcome(number, offset=10 * number, length=10), part)
        committer.hurry()

    commit(0)
    first = syncs.get(timeout=20)
    commit(1, 2, 3, 4)
    first.set()
    for _ in ("journal", "part file", "journal"):
        syncs.get(timeout=20).set()
    committer.stop()
    assert syncs.empty()
    assert [outcome.mini_batch for outcome, _ in committer.durable] == [0, 1, 2, 3, 4]
    for fd in (wake, wake_end, part):
        os.close(fd)


def test_what_could_not_be_prepared_is_not_stored_and_is_prepared_again(tmp_path: Path) -> None:
    """Nothing may be reported before leaders can read the key of its seal."""
    prepared: list[bool] = []

    def prepare() -> None:
        prepared.append(len(prepared) > 0)
        if len(prepared) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    wake, wake_end = os.pipe()
    committer = Committer(tmp_path / "journal", sync=True, wake=wake_end, prepare=prepare)
    for number in range(2):
        committer.add(outcome(number, part="", length=0), -1)
        committer.hurry()
        assert os.read(wake, 1)
    committer.stop()
    for fd in (wake, wake_end):
        os.close(fd)
    assert [candidate.outcome.mini_batch for candidate, *_ in committer.not_stored] == [0]
    assert [outcome.mini_batch for outcome, _ in committer.durable] == [1]
    assert prepared == [False, True]
