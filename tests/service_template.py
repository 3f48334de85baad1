"""Services that are forked from a process which has imported what they share, as in an embedded cluster: what a cluster
costs to start is then a fraction, and tests start hundreds."""

from __future__ import annotations

import atexit
import os
import select
import signal
import socket
import subprocess
import sys
import time
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Final

from parallelrun_core.service import launch, template
from parallelrun_core.service.template import PACKET_BYTES, Order

ROOT: Final = Path(__file__).parents[1]
_SERVICES: Final = (
    "parallelrun_agent.main",
    "parallelrun_api.main",
    "parallelrun_concatenator.main",
    "parallelrun_master.main",
)
_AT_IMPORT: Final = ("LD_", "OTEL_", "PARALLELRUN_FAILPOINTS", "PYTHON")
"""Beginnings of variables that are read when a process starts or imports: too early for one that is forked later."""
_MOST_S: Final = 0.05


class ForkedService:
    """A service, with those parts of `subprocess.Popen` that tests use."""

    def __init__(self, template: ServiceTemplate, pid: int) -> None:
        self.pid: Final = pid
        self._template = template

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        return self._template.code_of(self.pid)

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0)
            self._template.wait_for_news(_MOST_S if deadline is None else max(0.0, deadline - time.monotonic()))
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ServiceTemplate:
    """The process that forks services; its end, or that of this process, ends them."""

    def __init__(self) -> None:
        self._channel, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with end:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.service_template", str(end.fileno()), str(os.getpid()), "-" * 2048],
                cwd=ROOT,
                pass_fds=[end.fileno()],
                start_new_session=True,
            )
        self._codes: dict[int, int] = {}
        self._lock = Lock()

    def start(self, module: str, arguments: list[str], environment: dict[str, str], log: int) -> ForkedService:
        """Start a service that writes to this descriptor."""
        shown_as = [sys.executable, "-m", "parallelrun_core.service.launch", module, *arguments]
        order = Order(module=module, arguments=arguments, environment=environment, shown_as=shown_as)
        order_fd = order.file()
        try:
            with self._lock:
                socket.send_fds(self._channel, [b"fork"], [order_fd, log])
                while (pid := self._receive(0)) is None:
                    pass
                self._codes.pop(pid, None)  # of an earlier process with this id
        finally:
            os.close(order_fd)
        return ForkedService(self, pid)

    def code_of(self, pid: int) -> int | None:
        """The exit code of a service that has ended."""
        with self._lock:
            try:
                while pid not in self._codes:
                    self._receive(socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            return self._codes[pid]

    def wait_for_news(self, timeout_s: float) -> None:
        """Wait until something is told, which another thread may read first: hence only for a moment."""
        told = select.poll()
        told.register(self._channel, select.POLLIN)
        told.poll(1000 * min(timeout_s, _MOST_S))

    def close(self) -> None:
        self._channel.close()
        self._process.wait()

    def _receive(self, flags: int) -> int | None:
        """Read one packet; returns the process that it says was forked."""
        match self._channel.recv(PACKET_BYTES, flags).decode().split():
            case ["forked", pid]:
                return int(pid)
            case ["ended", pid, code]:
                self._codes[int(pid)] = int(code)
                self._channel.send(f"reap {pid}".encode())
                return None
            case _:
                raise AssertionError("the template of services has ended")


def can_be_forked(environment: dict[str, str]) -> bool:
    """Tell if these variables of a service mean the same to a process that is forked."""
    mine = {name: value for name, value in environment.items() if value and os.environ.get(name) != value}
    return not any(name.startswith(_AT_IMPORT) for name in mine)


@cache
def service_template() -> ServiceTemplate:
    """The template of this process' tests."""
    template = ServiceTemplate()
    atexit.register(template.close)
    return template


if __name__ == "__main__":
    with launch.quick_imports():
        for service in _SERVICES:
            import_module(service)
    template.main()
