"""How a process ends: when it is asked to, or with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from parallelrun_core.service import process
from parallelrun_core.service.process import StopSignal

PARENT = """
import os, subprocess, sys
command = [sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()"]
subprocess.Popen([sys.executable, "-I", "-S", sys.argv[1], str(os.getpid()), *command])
sys.stdin.read()
"""
REAPER = """
import os, sys
from parallelrun_core.service.process import become_subreaper
assert become_subreaper()
if not os.fork():
    if not os.fork():
        os._exit(7)
    os._exit(0)
codes = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(2)]
sys.exit(sum(codes))
"""


@pytest.fixture(autouse=True)
def _handlers_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_came_before_is_not_waited_for(number: int) -> None:
    stop = StopSignal()
    signal.raise_signal(number)
    signal.raise_signal(number)
    assert stop.came
    for _ in range(3):
        stop.wait()


def test_a_signal_ends_the_waiting() -> None:
    stop = StopSignal()
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()
    stop.wait()
    assert stop.came


def test_without_one_waiting_ends_after_its_time() -> None:
    stop = StopSignal()
    stop.wait(0.01)
    assert not stop.came


def test_a_command_that_is_started_through_the_program_ends_with_its_parent() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(process.__file__)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        parent.kill()
        assert parent.stdout.read() == b""  # its end: the command held the pipe, too


def test_a_command_whose_parent_has_ended_is_not_started() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(process.__file__), "1", "/bin/true"], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, b"the parent process has ended\n")


def test_a_subreaper_becomes_the_parent_of_orphans() -> None:
    assert subprocess.run([sys.executable, "-c", REAPER], check=False).returncode == 7
