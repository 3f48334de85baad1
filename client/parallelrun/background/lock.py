"""Locks that their holder can't leave behind: the kernel releases them when it ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Final, Self

_POLL_EVERY_S: Final = 0.02


class FolderLock:
    """The right to use a folder, held as a lock on a file in it.

    The file may be removed together with the folder while the lock is held.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        """A process that inherits it holds the lock as well, until all of its holders have ended."""

    @classmethod
    def take(cls, path: Path, *, patience_s: float = 0.0) -> Self | None:
        """Lock this file, which is created if missing; None if somebody else holds it all that time."""
        deadline = time.monotonic() + patience_s
        while (lock := cls._try(path)) is None and time.monotonic() < deadline:
            time.sleep(_POLL_EVERY_S)  # flock has no timeout
        return lock

    @classmethod
    def _try(cls, path: Path) -> Self | None:
        while True:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                return None
            # The last holder may have removed the file between our two calls: then this locks nothing.
            if _is_same_file(fd, path):
                return cls(fd)
            os.close(fd)

    def release(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def is_locked(path: Path) -> bool:
    """Return whether somebody holds the lock on this file right now."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that those who only ask don't block each other.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def wait_until_released(path: Path, timeout_s: float) -> bool:
    """Wait until nobody holds the lock on this file; False if somebody does after that time."""
    deadline = time.monotonic() + timeout_s
    while is_locked(path):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_EVERY_S)  # flock has no timeout
    return True


def _is_same_file(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False
