"""What the committer leaves behind when it ends."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from parallelrun_agent.committer import Committer
from tests.unit.core.making import outcome


def test_a_part_file_is_closed_also_when_its_worker_is_buried_during_the_last_sync(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    syncing, buried = threading.Event(), threading.Event()

    def slow(_: int) -> None:
        syncing.set()
        assert buried.wait(20)

    monkeypatch.setattr(os, "fdatasync", slow)
    wake, wake_end = os.pipe()
    committer = Committer(tmp_path / "journal", sync=True, wake=wake_end)
    part = os.open(tmp_path / "part", os.O_CREAT | os.O_WRONLY)
    os.write(part, b"0123456789")
    committer.add(outcome(0, length=10), part)
    committer.hurry()
    assert syncing.wait(20)
    committer.close_part(part)
    with committer._lock:
        committer._stopped = True  # as stop() does, which waits for the thread
    buried.set()
    committer.stop()
    for fd in (wake, wake_end):
        os.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(part)
