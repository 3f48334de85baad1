"""`python -m parallelrun.embedded.background_process FD HOME PORT NODES PROCESSES LISTEN`: a cluster until SIGTERM.

It writes to FD, as JSON, that the cluster is ready or why it doesn't start, and closes FD.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import parallelrun.client  # noqa: F401 - now, while `launch` spares it what no service needs
from parallelrun.background.lock import FolderLock
from parallelrun.background.state import BackgroundCluster, lock_file, requested_nodes_file, state_file
from parallelrun.embedded.background import WAKE_UP
from parallelrun.embedded.cluster import Cluster
from parallelrun.embedded.kept_token import kept_token
from parallelrun.errors import ParallelRunError
from parallelrun_core.durable_files import replace_file
from parallelrun_core.service.process import StopSignal, hide_memory


def main() -> int:
    """Run a cluster; returns the exit code."""
    hide_memory()  # it has the token of the cluster, and the password of its Redis
    fd, home, port, nodes, processes, listen = sys.argv[1:]
    stop = StopSignal()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with os.fdopen(int(fd), "w") as answer:
        os.set_inheritable(answer.fileno(), False)
        try:
            lock = FolderLock.take(lock_file())
            if lock is None:
                raise ParallelRunError("another one is being started or stopped.")
            cluster = Cluster(
                home,
                nodes=int(nodes),
                listen=listen,
                has_computes=True,
                processes=int(processes) or None,
                port=int(port),
                token=kept_token(Path(home)),
                on_note=_note,
            )
            cluster.start()
        except ParallelRunError as error:
            json.dump({"error": error.message}, answer)
            return 1
        started = datetime.now(UTC).isoformat(timespec="seconds")
        stop.also_wake(WAKE_UP)  # before anybody knows the process id to which to send it
        _write_state(cluster, started)
        json.dump({"error": None}, answer)
    while not stop.came:
        stop.wait()
        if not stop.came:
            _add_nodes(cluster, started)
    state_file().unlink(missing_ok=True)
    cluster.stop()
    lock.release()
    return 0


def _add_nodes(cluster: Cluster, started: str) -> None:
    nodes = int(requested_nodes_file().read_text())
    if nodes > cluster.nodes:
        cluster.add_nodes(nodes - cluster.nodes)
        _write_state(cluster, started)
        _note(f"nodes were added: there are {nodes}")


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
