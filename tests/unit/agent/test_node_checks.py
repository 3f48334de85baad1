"""A node that checks itself has one thread for it, and nothing that it is asked to read can hold it up for good."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from parallelrun_agent.node import checks
from parallelrun_agent.node.checks import NodeChecks
from parallelrun_core.checks.stores import readable
from parallelrun_core.store.nodes import NodeCheckRequest
from parallelrun_core.wire.finding import Level


def test_requests_that_come_meanwhile_have_no_thread_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Semaphore(0), threading.Event()

    def slow(_: object) -> list[object]:
        begun.release()
        may_end.wait(20)
        return []

    monkeypatch.setattr(checks, "_troubles", slow)
    node = NodeChecks(tmp_path)
    for number in range(5):
        node.ask(NodeCheckRequest(id=f"r{number}", paths=[]))
    assert begun.acquire(timeout=20)
    assert not begun.acquire(timeout=0.2)
    may_end.set()
    deadline = time.monotonic() + 20
    while node.answer is None or node.answer.id != "r4":
        node.ask(NodeCheckRequest(id="r4", paths=[]))
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    said = []
    thread = threading.Thread(target=lambda: said.append(readable("input", str(tmp_path / "pipe"))), daemon=True)
    thread.start()
    thread.join(20)
    assert [each.level for each in said] == [Level.BAD]


def test_a_file_and_a_folder_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("rows")
    levels = {readable("input", str(path)).level for path in (tmp_path, tmp_path / "file")}
    assert levels == {Level.OK}
