"""Requests for stacks are answered beside the agent's one thread, which never waits for that."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from parallelrun_agent.stacks import answering
from parallelrun_agent.stacks.answering import StackAnswers
from parallelrun_core.layout import Logs
from parallelrun_core.store.nodes import StacksRequest


class Worker:
    """One that has memory for stacks."""

    def __init__(self) -> None:
        self.process, self.pid = "process000", os.getpid()
        self.pidfd = os.pidfd_open(self.pid)
        self.stacks = self
        self.closed = threading.Event()

    def copy(self) -> Worker:
        return self

    def close(self) -> None:
        self.closed.set()


def no_more(_: int) -> int:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_nobody_waits_for_an_answer_that_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_go_on, worker = threading.Event(), Worker()

    def slowly(*_: Any, **__: Any) -> list[Any]:
        may_go_on.wait(30)
        return []

    monkeypatch.setattr(answering, "stacks_of", slowly)
    user: Any = None
    processes: Any = {worker.process: worker}
    answers = StackAnswers(Logs(tmp_path), "node", code="/code", sanitize=str, user=user)
    with monkeypatch.context() as full:
        full.setattr(os, "dup", no_more)
        answers.answer(StacksRequest(id="0", job_id="job"), processes)
    assert worker.closed.is_set(), "what was opened is closed"
    worker.closed.clear()
    answers.answer(StacksRequest(id="1", job_id="job"), processes)
    began = time.monotonic()
    answers.close()
    assert time.monotonic() - began < 1.0

    may_go_on.set()
    assert worker.closed.wait(30)  # it gives back what it has by itself
    assert not list(tmp_path.rglob("*.*"))
    os.close(worker.pidfd)
