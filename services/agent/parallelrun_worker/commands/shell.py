"""The process of a command. It is in the worker's process group, so whatever ends the worker ends the command."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Mapping
from typing import NamedTuple

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh")
_SET_DEATH_SIGNAL = 1
_NOT_STARTED = 127
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_PATIENCE_S = 5.0
_POLL_S = 0.002


class ProcessEnd(NamedTuple):
    """The end of a process, and what it used with those of its children that it waited for."""

    status: int
    """Its exit code; negative: the signal that ended it."""
    cpu_s: float
    peak_bytes: int
    minor_faults: int = 0
    major_faults: int = 0
    voluntary_switches: int = 0
    involuntary_switches: int = 0


def run(text: str, *, folder: str, environment: Mapping[str, str], stdout: int, stderr: int) -> ProcessEnd:
    """Have a shell run a text, and wait for its end.

    Args:
        stdout, stderr: descriptors.
    """
    shell = next((each for each in _SHELLS if os.access(each, os.X_OK)), _SHELLS[-1])
    prctl = ctypes.CDLL(None).prctl
    worker = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != worker:  # it died before that call
                os._exit(_NOT_STARTED)
            os.dup2(stdout, 1)
            os.dup2(stderr, 2)
            os.chdir(folder)
            for each in _IGNORED_BY_PYTHON:
                signal.signal(each, signal.SIG_DFL)
            os.execve(shell, [shell, "-c", text], environment)  # noqa: S606 - it is the shell
        except BaseException as error:
            os.write(2, f"{shell}: {error}\n".encode("utf-8", "backslashreplace"))
        finally:
            os._exit(_NOT_STARTED)
    while True:
        ended, status, used = os.wait4(-1, 0)
        if ended == pid:  # others are daemons, which have become children of this process
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
            return ProcessEnd(
                code, used.ru_utime + used.ru_stime, used.ru_maxrss << 10,
                used.ru_minflt, used.ru_majflt, used.ru_nvcsw, used.ru_nivcsw,
            )  # fmt: skip


def end_what_is_left() -> None:
    """End what a command has left running: it would go on to change outputs that are about to be handed on.

    This process is a subreaper, so all of it is below it, and comes up when its parent is gone.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        for pid in _children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_S)


def _children() -> list[int]:
    own_pid = str(os.getpid()).encode()
    children = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - plain names
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = file.read().rpartition(b")")[2].split()[1]
            except (OSError, IndexError):
                continue
            if parent == own_pid:
                children.append(int(name))
    return children
