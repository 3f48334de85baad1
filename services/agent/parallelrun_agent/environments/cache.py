"""The environments that a node keeps: a limited number, the most recently used ones, and all that are in use.

Each process that uses or builds one holds a shared lock on the file `<name>.use` beside it, whose time is that of the
last use. A process that removes one holds the lock exclusively, and first moves the environment away: it is complete,
or not there. The lock file is removed, too, so a lock counts only if its file still has the name.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

LOCK: Final = ".lock"
"""Ending of the file that is locked by the one process which builds the environment, and uses it already."""
_USE: Final = ".use"
_REMOVED: Final = ".removed"


def check_cache(folder: Path) -> None:
    """Make sure that nobody but this user and root could put something else into a folder, or in its place.

    Raises:
        PermissionError: somebody could; the message says what to do.
    """
    existing = [each for each in [folder, *folder.absolute().parents] if each.exists()]
    for each in existing:
        status = each.stat()
        if status.st_uid not in (0, os.geteuid()) or (each == folder and status.st_uid != os.geteuid()):
            raise PermissionError(f"{each} belongs to user {status.st_uid}; {_CACHE_ADVICE}")
        is_open = status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and status.st_gid != os.getegid())
        if is_open and (each == folder or not status.st_mode & stat.S_ISVTX):
            raise PermissionError(f"others can write to {each}; {_CACHE_ADVICE}")


_CACHE_ADVICE: Final = "environments are kept there: give the agent a folder of its own with --cache-dir"


class InUse:
    """Keeps an environment, built or yet to be built, from being removed until it is closed."""

    def __init__(self, folder: Path) -> None:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._fd = _locked(folder, fcntl.LOCK_SH)  # an exclusive lock is held only for a moment
        with suppress(OSError):
            os.utime(self._fd)

    def close(self) -> None:
        """Give up the hold on the environment. Twice does no harm."""
        if self._fd >= 0:
            with suppress(OSError):
                os.utime(self._fd)
            os.close(self._fd)
            self._fd = -1


def prune(environments: Path, max_environments: int) -> list[str]:
    """Remove the least recently used ones, until `max_environments` are left; returns their names.

    Those in use stay, however many they are, and so do those that can't be removed.
    """
    folders = [folder for folder in environments.iterdir() if folder.is_dir() and folder.suffix != _REMOVED]
    removed = []
    for folder in sorted(folders, key=_used)[: max(0, len(folders) - max_environments)]:
        if _removed(folder):
            removed.append(folder.name)
    for mark in environments.glob(f"*{_USE}"):  # of one that could not be built
        if not mark.with_suffix("").exists():
            _removed(mark.with_suffix(""))
    for leftover in environments.glob(f"*{_REMOVED}"):  # also of a process that was killed here
        shutil.rmtree(leftover, ignore_errors=True)
    return removed


def _used(folder: Path) -> float:
    """Return when it was used last; when it was built, if that isn't known."""
    for path in (folder.with_suffix(_USE), folder):
        with suppress(OSError):
            return path.stat().st_mtime
    return 0.0


def _locked(folder: Path, how: int) -> int:
    """The descriptor of an environment's file, locked.

    Raises:
        OSError: it can't be locked, or not without waiting and `how` says not to wait.
    """
    path = folder.with_suffix(_USE)
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, how)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(fd), path.stat()):
                    return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # the file was removed while we waited


def _removed(folder: Path) -> bool:
    """Move an environment out of the way, unless it is in use; whether it was moved."""
    try:
        fd = _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    try:
        if folder.exists():
            folder.rename(folder.with_suffix(_REMOVED))
        # The file that we hold locked comes last: from then on others may build the environment again.
        for ending in (LOCK, _USE):
            folder.with_suffix(ending).unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
