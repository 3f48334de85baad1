"""`python -m parallelrun_core.service.template FD PARENT PADDING`: has imported what services share, and forks them.

The services of an embedded cluster import the same six hundred modules, each for itself a third of a second of CPU and
twenty-five MB. Here it is done once: a service is forked with them, and imports what it alone needs. There is no thread
in this process, so none is lost by forking, and nothing that one service may know and another may not: what is told to
a service, its environment with its secrets above all, is read by the forked process only.

It gets SIGTERM when the thread of the process PARENT that has started it ends. PADDING is room for the command lines
of services, see `show_as`. FD is a socket (SOCK_SEQPACKET) on which the owner orders and is told:

    import MODULE…  what services need that are forked from now on: each would write to 7 MB of what it shares with
                    others, with the names that it imports
    fork            with two descriptors: an order (`Order`, as JSON) and the service's log → `forked PID`
    settle          fork no more, and give back the memory for it, see `parent.py`
    reap PID        forget a process that has ended; until then its id is given to no other one
    ended PID CODE  as `subprocess.Popen.returncode` has it

When the owner closes it, this process ends, and the kernel tells its services to end, as when it is killed. It may
also be a fork of its owner, which calls `serve`.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn

from parallelrun_core.service import launch, parent
from parallelrun_core.service.process import be_nice, die_with_parent, hide_memory, show_as
from parallelrun_core.service.process_start import put_python_path_last

PACKET_BYTES: Final = 256
_OF_LOADER: Final = frozenset({"LD_LIBRARY_PATH"})
"""Variables without which an interpreter may not start."""
_SHARED: Final = (
    "parallelrun_core.assets.catalog",
    "parallelrun_core.code.stored",
    "parallelrun_core.computes.catalog",
    "parallelrun_core.datastores.registry",
    "parallelrun_core.folder.decided",
    "parallelrun_core.folder.job_folder",
    "parallelrun_core.folder.manifest",
    "parallelrun_core.folder.session_keys",
    "parallelrun_core.folder.storage_report",
    "parallelrun_core.folder.unreadable",
    "parallelrun_core.hosting.health",
    "parallelrun_core.hosting.settings",
    "parallelrun_core.intake.reopening",
    "parallelrun_core.limits.definition",
    "parallelrun_core.mltable.formats.avro",
    "parallelrun_core.mltable.formats.delimited",
    "parallelrun_core.mltable.formats.delta_lake",
    "parallelrun_core.mltable.formats.json_lines",
    "parallelrun_core.mltable.formats.parquet",
    "parallelrun_core.mltable.input_plan",
    "parallelrun_core.mltable.plan",
    "parallelrun_core.pipelines.outputs",
    "parallelrun_core.pipelines.standing",
    "parallelrun_core.store.credentials",
    "parallelrun_core.store.fitness",
    "parallelrun_core.store.job_views",
    "parallelrun_core.store.leader_queue",
    "parallelrun_core.store.nodes",
    "parallelrun_core.store.outcome_stream",
    "parallelrun_core.store.provisioning",
    "parallelrun_core.store.registry",
    "parallelrun_core.store.rq.workers",
    "parallelrun_core.store.seals",
    "parallelrun_core.tracing.context",
    "parallelrun_core.wire.row_formats.jsonl",
    "parallelrun_core.wire.row_formats.parquet",
    "parallelrun_core.wire.row_formats.text",
)
"""Each with all that it imports: what most services need, and nothing that starts a thread."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """A service to be forked."""

    module: str
    """The module whose `main()` it runs."""
    arguments: list[str]
    environment: dict[str, str]
    shown_as: list[str]
    """The command line that others see."""
    folder: str = ""
    """The folder that it is in; empty: that of the template."""
    nice: int = 0

    def file(self) -> int:
        """Write it into a new file that only descriptors lead to; returns one, at its beginning."""
        fd = os.memfd_create("order")
        os.write(fd, json.dumps(asdict(self)).encode())
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    @classmethod
    def read(cls, fd: int) -> Order:
        """Read one from a file, which is closed."""
        with open(fd, "rb") as file:
            return cls(**json.load(file))


class Template:
    """The process that forks services. It runs for as long as its owner holds the other end of the channel."""

    def __init__(self, channel: socket.socket, wake: tuple[int, int]) -> None:
        self._channel = channel
        self._wake, self._wake_end = wake
        self._running: set[int] = set()

    def serve(self) -> None:
        """Do what the owner orders; returns when it has closed the channel."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_end, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self._wake:
                    os.read(self._wake, 4096)
                    self._report_ended()
                elif not self._obey():
                    return

    def _obey(self) -> bool:
        """Carry out the next order; returns False if there will be none."""
        packet, fds, _, _ = socket.recv_fds(self._channel, PACKET_BYTES, 2)
        match packet.decode().split():
            case ["import", *modules]:
                with suppress(Exception):  # the service says so, in its own log
                    _import(modules)
            case ["fork"]:
                pid = self._fork(*fds)
                self._running.add(pid)
                self._channel.send(f"forked {pid}".encode())
            case ["settle"]:
                self._settle()
            case ["reap", pid]:
                os.waitpid(int(pid), 0)
        return bool(packet)

    def _fork(self, order: int, log: int) -> int:
        """Fork a service; returns its process id, which by then is that of its session, too."""
        has_session, session_end = os.pipe()
        template = os.getpid()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.setsid()
                os.close(session_end)
                die_with_parent()
                if os.getppid() == template:  # it may have ended before the kernel was asked
                    os.close(has_session)
                    self._become(order, log)
                    code = 0
            finally:
                os._exit(code)
        os.close(session_end)
        os.read(has_session, 1)
        for fd in (has_session, order, log):
            os.close(fd)
        return pid

    def _become(self, order_fd: int, log: int) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._channel.close()
        os.close(self._wake)
        os.close(self._wake_end)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(log, stream.fileno())
        os.close(log)
        order = Order.read(order_fd)
        if order.nice:
            be_nice(os.getpid(), order.nice)
        if order.folder:
            os.chdir(order.folder)
        os.environ.clear()
        os.environ.update(order.environment)
        show_as(order.shown_as)
        sys.argv = [order.module, *order.arguments]
        try:
            launch.run(order.module)
        except BaseException:
            sys.excepthook(*sys.exc_info())  # as the interpreter does at the end of a program
            sys.stderr.flush()
            raise

    def _report_ended(self) -> None:
        for pid in list(self._running):
            if parent.has_ended(self._channel.fileno(), pid):
                self._running.discard(pid)

    def _settle(self) -> None:
        """Become a small program that goes on as the parent, if the kernel has what that needs."""
        if parent.can_be_parent():
            self._channel.set_inheritable(True)
            numbers = map(str, [self._channel.fileno(), *self._running])
            environment = {name: os.environ[name] for name in _OF_LOADER & os.environ.keys()}
            with suppress(OSError):
                os.execve(  # noqa: S606
                    sys.executable, [sys.executable, "-I", "-S", parent.__file__, *numbers], environment
                )


def serve(channel: int, owner: int, shown_as: list[str]) -> NoReturn:
    """Import, and fork services until the owner closes the channel; exits with 1 if that would lose a thread.

    Args:
        channel: the descriptor of this process' side.
        owner: the process that has started this one, and with which it ends.
        shown_as: the command line that others see.
    """
    hide_memory()
    die_with_parent()
    if os.getppid() != owner:  # it ended before the kernel was asked
        os._exit(0)
    put_python_path_last()
    _import(_SHARED)
    # Else each service does these, in memory of its own.
    import_module("parallelrun_core.spec").JobSpec.model_rebuild()
    import_module("parallelrun_core.store.rq.workers").warm_up()
    gc.freeze()
    show_as(shown_as)
    wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    Template(socket.socket(fileno=channel), wake).serve()
    os._exit(0)


def _import(modules: Iterable[str]) -> None:
    with launch.quick_imports():
        for module in modules:
            import_module(module)
    if sum(1 for _ in Path("/proc/self/task").iterdir()) > 1:
        sys.exit("an imported module has started a thread, which forking would lose: services import for themselves")


def main() -> None:
    """Be the program."""
    fd, owner = map(int, sys.argv[1:3])
    serve(fd, owner, sys.orig_argv[: -len(sys.argv[1:])])


if __name__ == "__main__":
    main()
