"""`python -m parallelrun.azure.front_process FD FOLDER HOST PORT`: a front of an API, until SIGTERM or nobody needs it.

It writes its port to FD when it listens, and closes FD.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec

from parallelrun.azure.certificate import Certificate
from parallelrun.azure.front import Front
from parallelrun.azure.fronts import RunningFront, lock_of, state_of
from parallelrun.background.lock import FolderLock
from parallelrun.embedded.cluster import reserve_port
from parallelrun_core.durable_files import replace_file
from parallelrun_core.service.process import hide_memory


def main() -> int:
    """Run a front; returns the exit code."""
    hide_memory()  # what passes through it has tokens
    fd, name, host, port = sys.argv[1:]
    folder = Path(name)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with os.fdopen(int(fd), "w") as answer:
        os.set_inheritable(answer.fileno(), False)
        lock = FolderLock.take(lock_of(folder))
        if lock is None:
            return 1
        listener = reserve_port(0)
        listener.listen()
        listener.setblocking(False)
        own_port = listener.getsockname()[1]
        certificate = Certificate(folder.parent)
        front = Front(host, int(port), certificate.chain)
        state = RunningFront(port=own_port, pid=os.getpid(), bundle=str(certificate.bundle))
        replace_file(state_of(folder), msgspec.json.encode(state), mode=0o600)
        answer.write(str(own_port))
    asyncio.run(_until_stopped(front, listener))
    state_of(folder).unlink(missing_ok=True)
    lock.release()
    return 0


async def _until_stopped(front: Front, listener: object) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    await front.serve(listener, stopping)  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main())
