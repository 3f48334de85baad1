"""The agent's event loop: calls what was registered for each file descriptor that has become readable."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable


class EventLoop:
    """The agent's epoll loop. For the agent's one thread alone, except `wake`."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._wake, self._wake_end = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._wake_end, False)
        self.add(self._wake, lambda: os.read(self._wake, 64))

    def add(self, fd: int, callback: Callable[[], object]) -> None:
        """Call this, from now on, when the descriptor is readable."""
        self._epoll.register(fd, select.EPOLLIN)
        self._callbacks[fd] = callback

    def remove(self, fd: int) -> None:
        """Forget a descriptor, before it is closed."""
        self._epoll.unregister(fd)
        del self._callbacks[fd]

    def poll(self, timeout_s: float) -> None:
        """Wait until a descriptor is readable, for so long at most, and make the calls that are due."""
        for fd, _ in self._epoll.poll(timeout_s):
            if (callback := self._callbacks.get(fd)) is not None:  # an earlier one may have removed it
                callback()

    def wake(self) -> None:
        """End the present or the next `poll`. Safe in any thread and in a signal handler."""
        os.write(self._wake_end, b"\1")

    def wake_on_signals(self) -> None:
        """Have each signal end `poll`, so that its handler runs at once."""
        signal.set_wakeup_fd(self._wake_end, warn_on_full_buffer=False)

    def close(self) -> None:
        """Free its own descriptors."""
        self._epoll.close()
        os.close(self._wake)
        os.close(self._wake_end)
