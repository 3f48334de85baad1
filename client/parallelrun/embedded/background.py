"""A cluster in the background: starting it, adding nodes to it, stopping it.

Its process (`background_process.py`) holds a lock for as long as it lives, so whether it is running is never a
guess. Beside the lock it writes its URL, token and process id to a file that only its user can read.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from parallelrun.background.lock import wait_until_released
from parallelrun.background.state import BackgroundCluster, lock_file, requested_nodes_file, running
from parallelrun.errors import ClusterFailed
from parallelrun_core.durable_files import replace_file
from parallelrun_core.service.state_folder import state_folder

STOP_S: Final = 70.0
WAKE_UP: Final = signal.SIGUSR1
"""The signal at which the background process reads how many nodes are requested."""
_NODES_WITHIN_S: Final = 60.0
_POLL_EVERY_S: Final = 0.05


class ClusterRequest(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Services that the background process starts, and how."""

    answer_fd: int
    """The open file to which it says what has come of it."""
    home: str
    port: int
    nodes: int
    processes: int | None
    """Workers of each node; None: the CPUs are divided between the nodes."""
    listen: str


def start(home: Path, *, port: int, nodes: int, processes: int | None, listen: str = "") -> BackgroundCluster:
    """Start a cluster in the background; returns when jobs can be submitted.

    Raises:
        ClusterFailed: it doesn't start, or another one is running.
    """
    state_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    read_end, write_end = os.pipe()
    request = ClusterRequest(
        answer_fd=write_end, home=str(home), port=port, nodes=nodes, processes=processes, listen=listen
    )
    command = [
        sys.executable,
        "-P",
        "-m",
        "parallelrun_core.service.launch",
        "parallelrun.embedded.background_process",
        msgspec.json.encode(request).decode(),
    ]
    log = state_folder() / "cluster.log"
    with log.open("wb") as output, os.fdopen(read_end, "rb") as answer:
        process = subprocess.Popen(
            command,
            cwd="/",
            pass_fds=[write_end],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        os.close(write_end)
        try:
            written = answer.read()  # to its end: the process closes it once the cluster is ready or has failed
        except BaseException:
            process.terminate()
            raise
    error = json.loads(written)["error"] if written else f"see {log}"
    if error:
        process.wait(STOP_S)  # until then it holds the lock, which would make a second attempt fail
    cluster = None if error else running()
    if cluster is None:
        raise ClusterFailed(f"The cluster didn't start: {error}")
    return cluster


def add_nodes(cluster: BackgroundCluster, nodes: int, alive_nodes: Callable[[], set[str]]) -> None:
    """Let the cluster in the background have this many nodes on this machine; returns when all of them are alive.

    Args:
        alive_nodes: asks the cluster for the names of the nodes that are alive.

    Raises:
        ClusterFailed: they don't come, or the cluster was started by an earlier release.
    """
    from parallelrun.embedded.services import ClusterLayout, node_names

    if cluster.nodes < 0:
        raise ClusterFailed("An earlier release started this cluster: stop it first, with `parallelrun down`.")
    replace_file(requested_nodes_file(), str(nodes).encode(), mode=0o600)
    os.kill(cluster.pid, WAKE_UP)
    deadline = time.monotonic() + _NODES_WITHIN_S
    while missing := set(node_names(nodes)) - alive_nodes():
        if time.monotonic() > deadline:
            logs = ClusterLayout(home=Path(cluster.home)).logs
            raise ClusterFailed(f"No sign of life of {', '.join(sorted(missing))}: see {logs}")
        time.sleep(_POLL_EVERY_S)  # the API tells nobody when a node comes


def stop() -> bool:
    """Stop the cluster in the background; False if there was none.

    Raises:
        ClusterFailed: it doesn't end.
    """
    cluster = running()
    if cluster is None:
        return False
    # While the lock is held, this process id belongs to its holder.
    os.kill(cluster.pid, signal.SIGTERM)
    if not wait_until_released(lock_file(), STOP_S):
        os.kill(cluster.pid, signal.SIGKILL)  # its services end with it
        if not wait_until_released(lock_file(), STOP_S):
            raise ClusterFailed(f"Process {cluster.pid} doesn't end.")
    return True
