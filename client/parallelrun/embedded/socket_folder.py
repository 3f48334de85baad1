"""The folder of a cluster's socket, in the directory for temporary files, because a socket's path has to be short.

Whoever holds a lock on the folder itself owns it: the process of the cluster, and the Redis server that listens there.
The kernel releases the lock when both have ended, however they ended, and the next cluster of this user on this host
removes the folder. A marker in it, which is there only once the lock is held, says whose it is: a folder without one,
with that of another host, or with anything else but a socket and the file with its users is none of ours, and nor is
what belongs to another user.
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
_USERS: Final = "users.acl"
_MARKER: Final = "owner"
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
                with contextlib.suppress(OSError):  # the disk is full; then nobody removes it in our stead
                    (path / _MARKER).write_text(f"{socket.gethostname()} {os.getpid()}\n")
                return cls(path, fd)
            with contextlib.suppress(OSError):  # an older release took it for an abandoned one, and removed it
                path.rmdir()
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        return cls(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))  # this file system has no locks

    @property
    def socket(self) -> Path:
        return self.path / SOCKET

    @property
    def users(self) -> Path:
        """The file with the users of the server that listens there."""
        return self.path / _USERS

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
    # Only then the lock, even for a moment: the owner of a folder without a marker may be about to take it.
    fd = _claim(path) if _is_marked(path) else None
    if fd is None:
        return
    with contextlib.suppress(OSError):
        if {entry.name for entry in path.iterdir()} <= {SOCKET, _MARKER, _USERS} and not _is_listening(path / SOCKET):
            for name in (SOCKET, _USERS):
                (path / name).unlink(missing_ok=True)
            (path / _MARKER).unlink()
            path.rmdir()
    os.close(fd)


def _is_marked(path: Path) -> bool:
    """Return whether a cluster of this user on this host has owned that folder."""
    try:
        if path.lstat().st_uid != os.geteuid():
            return False
        host = (path / _MARKER).read_text().split()[:1]
    except (OSError, ValueError):  # there is no such file, or no text in it
        return False
    return host == [socket.gethostname()]


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
    """Return whether nobody else holds the lock, which is ours then until the descriptor is closed."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody does, or this file system has no locks
        return False
    return True


def _is_listening(path: Path) -> bool:
    """Return whether a server accepts connections there, though its lock is gone: a network file
    system may lose one.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:
            pass  # its queue is full
    return True
