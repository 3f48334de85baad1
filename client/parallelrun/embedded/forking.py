"""The owner's side of a template (`core/service/template.py`): services that are forked from it.

They are no children of this process, so the template says when one has ended.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from parallelrun.embedded.begun_template import BegunTemplate
from parallelrun_core.service.template import PACKET_BYTES, Order

_FORKED_WITHIN_S: Final = 60.0
"""A template first imports, which takes long on a machine that is very busy."""


class ForkedProcess:
    """A service that a template has forked, with those parts of `subprocess.Popen` that a supervisor uses."""

    def __init__(self, pid: int, reap: Callable[[int], None]) -> None:
        self.pid: Final = pid
        self.returncode: int | None = None
        self._reap = reap

    def terminate(self) -> None:
        """Ask it to end."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def wait(self) -> None:
        """Let its process id be used again; it has ended, or its template has."""
        self._reap(self.pid)


class TemplateLost(Exception):
    """The template has ended, or doesn't answer."""


class TemplateLink:
    """A template and the services that it has forked. Used by one thread, beside its own.

    Args:
        on_end: called in a thread of its own with each service that has ended, also when the template did.
    """

    def __init__(self, template: BegunTemplate, on_end: Callable[[ForkedProcess], None]) -> None:
        self._template = template
        self._channel = template.channel
        self._on_end = on_end
        self._forked: queue.SimpleQueue[ForkedProcess | None] = queue.SimpleQueue()
        self._running: dict[int, ForkedProcess] = {}
        threading.Thread(target=self._listen, name="template", daemon=True).start()

    def share(self, modules: Iterable[str]) -> None:
        """Have these imported before further services are forked."""
        with suppress(OSError):  # the next fork says so
            self._channel.send(" ".join(["import", *modules]).encode())

    def settle(self) -> None:
        """Have the template give back what it needs for forking; it forks no more."""
        with suppress(OSError):
            self._channel.send(b"settle")

    def fork(self, order: Order, log: int) -> ForkedProcess:
        """Have a service forked.

        Args:
            log: descriptor of the file that it writes to.

        Raises:
            TemplateLost: nothing was forked, and nothing will be.
        """
        order_fd = order.file()
        try:
            socket.send_fds(self._channel, [b"fork"], [order_fd, log])
            process = self._forked.get(timeout=_FORKED_WITHIN_S)
        except (OSError, queue.Empty) as error:
            raise TemplateLost from error
        finally:
            os.close(order_fd)
        if process is None:
            raise TemplateLost
        return process

    def close(self) -> None:
        """End the template; services that it still has end with it."""
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)  # closing it alone would not end the thread that reads
        self._template.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while packet := self._channel.recv(PACKET_BYTES):
                match packet.decode().split():
                    case ["forked", pid]:
                        process = self._running[int(pid)] = ForkedProcess(int(pid), self._reap)
                        self._forked.put(process)
                    case ["ended", pid, code]:
                        self._end(self._running.pop(int(pid)), int(code))
        self._forked.put(None)
        for process in [*self._running.values()]:  # the kernel has told them to end
            self._end(process, -signal.SIGTERM)

    def _end(self, process: ForkedProcess, code: int) -> None:
        process.returncode = code
        self._on_end(process)

    def _reap(self, pid: int) -> None:
        with suppress(OSError):
            self._channel.send(f"reap {pid}".encode())
