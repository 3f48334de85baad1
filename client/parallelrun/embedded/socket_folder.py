"""The folder of a cluster's socket, in the directory for temporary files, because a socket's path has to be short.

Whoever holds a lock on the folder itself owns it: the process of the cluster, and the Redis server that listens there.
The kernel releases the lock when both have ended, however they ended, and the next cluster of this user removes the
folder. What belongs to another user, or holds anything but a socket, is none of ours.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Final, Self

SOCKET: Final = "redis.sock"
_PREFIX: Final = "parallelrun-"
# What `mkdtemp` appends. Other folders that begin like this have names of another form.
_NAME: Final = re.compile(re.escape(_PREFIX) + "[a-z0-9_]{8}")
_TRIES: Final = 3


class SocketFolder:
    """A folder that is removed in the end, by `remove` or, if that is never called, by the next cluster's `create`."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.fd = fd
        """A process that inherits it owns the folder as well."""

    @classmethod
    def create(cls) -> Self:
        """A new folder. Those that nobody owns any more are removed."""
        _remove_abandoned()
        for _ in range(_TRIES):
            path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            fd = _claim(path)
            if fd is not None:
                return cls(path, fd)
            # Another cluster, which starts just now, took it for an abandoned one.
        return cls(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))  # this file system has no locks

    @property
    def socket(self) -> Path:
        return self.path / SOCKET

    def remove(self) -> None:
        """Remove it with everything in it; twice does no harm."""
        if self.fd >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self.fd)
            self.fd = -1


def _remove_abandoned() -> None:
    with contextlib.suppress(OSError):  # not everybody may list that directory
        for path in Path(tempfile.gettempdir()).iterdir():
            if _NAME.fullmatch(path.name):
                _remove_if_abandoned(path)


def _remove_if_abandoned(path: Path) -> None:
    fd = _claim(path)
    if fd is None:
        return
    with contextlib.suppress(OSError):
        if all(entry.name == SOCKET for entry in path.iterdir()) and not _is_listening(path / SOCKET):
            (path / SOCKET).unlink(missing_ok=True)
            path.rmdir()
    os.close(fd)


def _claim(path: Path) -> int | None:
    """Lock a folder of this user; None if somebody owns it, or it is no such folder."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with contextlib.suppress(OSError):  # it has just been removed
        status = os.fstat(fd)
        if status.st_uid == os.geteuid() and _lock(fd) and os.path.samestat(status, path.lstat()):
            return fd
    os.close(fd)
    return None


def _lock(fd: int) -> bool:
    """Whether nobody else holds the lock, which is ours then until the descriptor is closed."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody does, or this file system has no locks
        return False
    return True


def _is_listening(path: Path) -> bool:
    """Whether a server accepts connections there: one whose owner knows nothing of locks, of another release."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:
            pass  # its queue is full
    return True
