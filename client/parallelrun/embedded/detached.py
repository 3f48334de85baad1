"""A cluster that stays in the background: who keeps it, and how other commands find it.

The keeper (`keeper.py`) holds a lock as long as it lives, so whether it is there is never a guess, and writes
URL, token and its process id into a file beside it that nobody else can read.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import msgspec

from parallelrun.embedded.lock import is_locked
from parallelrun.errors import ClusterFailed

STOP_S: Final = 45.0
_LOOK_EVERY_S: Final = 0.05


class Detached(msgspec.Struct, kw_only=True, frozen=True):
    """How to reach the cluster in the background."""

    url: str
    token: str
    pid: int
    home: str
    started: str


def state_folder() -> Path:
    """Where this user's state is kept."""
    base = os.environ.get("XDG_STATE_HOME", "")
    # The standard says that a relative path there is to be ignored.
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "parallelrun"


def lock_file() -> Path:
    """What the keeper holds locked."""
    return state_folder() / "cluster.lock"


def state_file() -> Path:
    """What the keeper tells."""
    return state_folder() / "cluster.json"


def running() -> Detached | None:
    """The cluster in the background, if there is one that is ready."""
    if not is_locked(lock_file()):
        return None
    try:
        return msgspec.json.decode(state_file().read_bytes(), type=Detached)
    except (FileNotFoundError, msgspec.DecodeError):
        return None  # it is just being started, or stopped


def start(home: Path, *, port: int, nodes: int, processes: int | None) -> Detached:
    """Start a cluster in the background; returns when jobs can be submitted.

    Raises:
        ClusterFailed: it doesn't come up, or another one is there.
    """
    state_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    read_end, write_end = os.pipe()
    command = [
        sys.executable,
        "-P",
        "-m",
        "parallelrun.embedded.keeper",
        str(write_end),
        str(home),
        str(port),
        str(nodes),
    ]
    log = state_folder() / "cluster.log"
    with log.open("wb") as output, os.fdopen(read_end, "rb") as answer:
        keeper = subprocess.Popen(
            [*command, str(processes or 0)],
            cwd="/",
            pass_fds=[write_end],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        os.close(write_end)
        try:
            said = answer.read()  # to its end: the keeper closes it once there is nothing to add
        except BaseException:
            keeper.terminate()
            raise
    error = json.loads(said)["error"] if said else f"see {log}"
    if error:
        keeper.wait(STOP_S)  # until then it holds the lock, and a second attempt would fail for that
    found = None if error else running()
    if found is None:
        raise ClusterFailed(f"The cluster didn't start: {error}")
    return found


def stop() -> bool:
    """Stop the cluster in the background; False when there was none.

    Raises:
        ClusterFailed: it doesn't end.
    """
    found = running()
    if found is None:
        return False
    # As long as the lock is held, this process id is that of its holder.
    os.kill(found.pid, signal.SIGTERM)
    if not _ended(STOP_S):
        os.kill(found.pid, signal.SIGKILL)  # its services end with it
        if not _ended(STOP_S):
            raise ClusterFailed(f"Process {found.pid} doesn't end.")
    return True


def _ended(timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while is_locked(lock_file()):
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_EVERY_S)  # waiting for a lock can't be given a limit
    return True
