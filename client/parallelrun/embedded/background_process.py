"""`python -m parallelrun.embedded.background_process REQUEST`: a cluster until SIGTERM.

REQUEST is a `ClusterRequest` as JSON. To its `answer_fd` the process writes, as JSON, that the cluster is ready or why
it doesn't start, and closes it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import parallelrun.client  # noqa: F401 - now, while `launch` spares it what no service needs
from parallelrun.background.lock import FolderLock
from parallelrun.background.state import BackgroundCluster, lock_file, requested_nodes_file, state_file
from parallelrun.embedded.background import WAKE_UP, ClusterRequest
from parallelrun.embedded.cluster import Cluster
from parallelrun.embedded.kept_token import kept_token
from parallelrun.errors import ParallelRunError
from parallelrun_core.durable_files import replace_file
from parallelrun_core.service.process import StopSignal, hide_memory


def main() -> int:
    """Run a cluster; returns the exit code."""
    hide_memory()  # it has the token of the cluster, and the password of its Redis
    request = msgspec.json.decode(sys.argv[1], type=ClusterRequest)
    stop = StopSignal()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with ExitStack() as stack:
        with os.fdopen(request.answer_fd, "w") as answer:
            os.set_inheritable(answer.fileno(), False)
            try:
                cluster, started = _start(request, stop, stack)
            except (ParallelRunError, OSError) as error:
                json.dump({"error": error.message if isinstance(error, ParallelRunError) else str(error)}, answer)
                return 1
            json.dump({"error": None}, answer)
        while not stop.came:
            stop.wait()
            if not stop.came:
                _add_nodes(cluster, started)
    return 0


def _start(request: ClusterRequest, stop: StopSignal, stack: ExitStack) -> tuple[Cluster, str]:
    """Start the cluster that is requested, and tell others where it is; returns it, and when it has started.

    Args:
        stack: gets what is to be undone in the end, also if this fails.

    Raises:
        ParallelRunError: it doesn't start, or another one holds the lock.
        OSError: the folder of its state, or its home, can't be used.
    """
    lock = FolderLock.take(lock_file())
    if lock is None:
        raise ParallelRunError("another one is being started or stopped.")
    stack.callback(lock.release)
    requested_nodes_file().unlink(missing_ok=True)  # what was requested of an earlier one
    cluster = Cluster(
        request.home,
        nodes=request.nodes,
        listen=request.listen,
        has_computes=True,
        processes=request.processes,
        port=request.port,
        token=kept_token(Path(request.home)),
        on_note=_note,
    )
    cluster.start()
    stack.callback(cluster.stop)
    cluster.wait_for_leaders()  # or one that refuses its settings would die after it was said that all is well
    started = datetime.now(UTC).isoformat(timespec="seconds")
    stop.also_wake(WAKE_UP)  # before anybody knows the process id to which to send it
    _write_state(cluster, started)
    stack.callback(requested_nodes_file().unlink, missing_ok=True)
    stack.callback(state_file().unlink, missing_ok=True)
    return cluster, started


def _add_nodes(cluster: Cluster, started: str) -> None:
    """Start the nodes that are requested. What keeps them from starting is logged, and the cluster goes on without."""
    try:
        nodes = int(requested_nodes_file().read_text())
        if nodes > cluster.nodes:
            cluster.add_nodes(nodes - cluster.nodes)
            _write_state(cluster, started)
            _note(f"nodes were added: there are {nodes}")
    except (OSError, ValueError, ParallelRunError, RuntimeError) as error:
        _note(f"no nodes were added: {error}")


def _write_state(cluster: Cluster, started: str) -> None:
    state = BackgroundCluster(
        url=cluster.url,
        token=cluster.token,
        pid=os.getpid(),
        home=str(cluster.layout.home),
        nodes=cluster.nodes,
        redis_url=cluster.listener.url if cluster.listener else "",
        started=started,
    )
    replace_file(state_file(), msgspec.json.encode(state), mode=0o600)


def _note(text: str) -> None:
    print(f"{datetime.now(UTC).isoformat(timespec='seconds')} {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
