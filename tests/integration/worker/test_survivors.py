"""What a killed agent has left behind is recognized by its mark, and nothing else is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun_agent.workers import survivors
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
