"""What a killed agent has left behind is recognized by its mark, and nothing else is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from parallelrun_agent.workers import survivors
from parallelrun_agent.workers.orphans import Orphans
from tests.integration.worker.worker_harness import is_alive

SLEEPER = [sys.executable, "-c", "import time; time.sleep(1000)"]


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def dead_agent(folder: Path) -> str:
    """The mark of an agent that has ended."""
    code = (
        f"import pathlib, parallelrun_agent.workers.survivors as each; print(each.mark(pathlib.Path({str(folder)!r})))"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_only_those_of_a_dead_agent_are_ended(started: list[subprocess.Popen[bytes]], tmp_path: Path) -> None:
    dead = dead_agent(tmp_path)
    namespace, _, rest = dead.partition(":")
    others = [survivors.mark(tmp_path), f"{int(namespace) + 1}:{rest}", dead_agent(tmp_path / "other"), "x:y"]
    for mark in (dead, *others):
        started.append(subprocess.Popen(SLEEPER, env={**os.environ, survivors.MARK: mark}))
    started.append(subprocess.Popen(SLEEPER))
    survivors.end_survivors(tmp_path)
    assert started[0].wait(30) == -9
    assert [is_alive(process.pid) for process in started[1:]] == [True] * 5


def test_what_cannot_be_ended_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a child that is root's: the agent has leases to renew."""
    children = [os.posix_spawn("/bin/sleep", ["sleep", "1000"], {})]

    def lives(pid: int) -> bool:
        with suppress(ChildProcessError):
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        return False

    def end(pid: int, number: int) -> None:
        if pid == children[0]:
            raise PermissionError
        kill(pid, number)

    kill = os.kill
    orphans = Orphans()
    orphans.begin(lambda: True)
    monkeypatch.setattr(Orphans, "_left_behind", lambda _: {*filter(lives, children)})
    monkeypatch.setattr(os, "kill", end)
    took_s = []
    for _ in range(3):
        began = time.monotonic()
        orphans.reap()
        took_s.append(time.monotonic() - began)
        children.append(os.posix_spawn("/bin/sleep", ["sleep", "1000"], {}))
    monkeypatch.undo()
    assert took_s[0] > 1.0 > max(took_s[1:])
    assert [*map(lives, children)] == [True, False, False, True]
    for pid in (children[0], children[-1]):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
