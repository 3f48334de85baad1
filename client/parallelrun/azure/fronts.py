"""The fronts of this user: starting one in the background, finding it again, stopping it.

Each has a folder of its own, by the address that it leads to, and holds a lock in it for as long as it lives.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import msgspec

from parallelrun.azure.certificate import Certificate
from parallelrun.background.lock import is_locked, wait_until_released
from parallelrun.errors import ParallelRunError
from parallelrun_core.service.state_folder import state_folder

_STOP_S: Final = 15.0
_START_S: Final = 30.0
_POLL_EVERY_S: Final = 0.05


class RunningFront(msgspec.Struct, kw_only=True, frozen=True):
    """The address of a running front, and its process."""

    port: int
    pid: int
    bundle: str
    """The file with the authorities to trust."""


def lock_of(folder: Path) -> Path:
    """The file that a front holds locked."""
    return folder / "lock"


def state_of(folder: Path) -> Path:
    """The file in which a front says how to reach it."""
    return folder / "front.json"


def folder_of(host: str, port: int) -> Path:
    """The folder of the front that leads to this address."""
    digest = hashlib.sha256(f"{host}:{port}".encode()).hexdigest()[:16]
    return state_folder() / "azure" / digest


def running(folder: Path) -> RunningFront | None:
    """The front of this folder, if there is one."""
    if not is_locked(lock_of(folder)):
        return None
    try:
        return msgspec.json.decode(state_of(folder).read_bytes(), type=RunningFront)
    except (FileNotFoundError, msgspec.DecodeError):
        return None  # it is being started or stopped


def start(host: str, port: int) -> RunningFront:
    """The front that leads to this address: the one that is there, or a new one.

    Raises:
        ParallelRunError: it doesn't start.
    """
    folder = folder_of(host, port)
    deadline = time.monotonic() + _START_S
    while (front := running(folder)) is None:
        Certificate(folder.parent).make()
        _start(folder, host, port)
        if time.monotonic() > deadline:
            raise ParallelRunError(f"The TLS front of {host}:{port} doesn't start: see {folder / 'front.log'}.")
    return front


def stop(host: str, port: int) -> bool:
    """Stop the front that leads to this address; False if there was none."""
    folder = folder_of(host, port)
    front = running(folder)
    if front is None:
        return False
    # While the lock is held, this process id belongs to its holder.
    os.kill(front.pid, signal.SIGTERM)
    if not wait_until_released(lock_of(folder), _STOP_S) and running(folder) == front:
        os.kill(front.pid, signal.SIGKILL)
        wait_until_released(lock_of(folder), _STOP_S)
    return True


def _start(folder: Path, host: str, port: int) -> None:
    """Start a process; returns when it listens or has failed."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    read_end, write_end = os.pipe()
    command = [sys.executable, "-P", "-m", "parallelrun.azure.front_process", str(write_end), str(folder), host]
    with (folder / "front.log").open("wb") as output, os.fdopen(read_end, "rb") as answer:
        subprocess.Popen(
            [*command, str(port)],
            cwd="/",
            pass_fds=[write_end],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        os.close(write_end)
        if not answer.read():  # to its end: the process closes it once it listens or has failed
            time.sleep(_POLL_EVERY_S)
