"""The environments that a node keeps: so many at most, those that were used last, and never fewer than are in use.

Whoever uses or makes one holds a shared lock on the file `<name>.use` beside it, whose time says when that was. Whoever
removes one holds it alone, and first moves the environment away: it is whole, or not there. The file goes with it, so
who has got a lock looks whether it is still that of the file which has the name.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

LOCK: Final = ".lock"
"""Ending of the file that is locked by the one process which makes the environment; who opens it uses that already."""
_USE: Final = ".use"
_REMOVED: Final = ".removed"


class InUse:
    """Keeps an environment, made or yet to be made, from being removed until it is closed."""

    def __init__(self, folder: Path) -> None:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._fd = _locked(folder, fcntl.LOCK_SH)  # held alone only for a moment
        with suppress(OSError):
            os.utime(self._fd)

    def close(self) -> None:
        """It is not needed any more. Twice does no harm."""
        if self._fd >= 0:
            with suppress(OSError):
                os.utime(self._fd)
            os.close(self._fd)
            self._fd = -1


def prune(environments: Path, kept: int) -> list[str]:
    """Remove those that were used longest ago, until so many are left; returns their names.

    Those in use stay, however many they are. What can't be removed stays, too.
    """
    found = [folder for folder in environments.iterdir() if folder.is_dir() and folder.suffix != _REMOVED]
    removed = []
    for folder in sorted(found, key=_used)[: max(0, len(found) - kept)]:
        if _removed(folder):
            removed.append(folder.name)
    for mark in environments.glob(f"*{_USE}"):  # of one that could not be made
        if not mark.with_suffix("").exists():
            _removed(mark.with_suffix(""))
    for left in environments.glob(f"*{_REMOVED}"):  # also of a process that was killed here
        shutil.rmtree(left, ignore_errors=True)
    return removed


def _used(folder: Path) -> float:
    """When it was used last; when it was made, if nobody has said."""
    for path in (folder.with_suffix(_USE), folder):
        with suppress(OSError):
            return path.stat().st_mtime
    return 0.0


def _locked(folder: Path, how: int) -> int:
    """The descriptor of an environment's file, locked.

    Raises:
        OSError: it can't be, or is locked by others and `how` says not to wait.
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
        os.close(fd)  # it was removed while we waited


def _removed(folder: Path) -> bool:
    """Move an environment to where nobody looks for it, unless it is in use; whether it was moved."""
    try:
        fd = _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    try:
        if folder.exists():
            folder.rename(folder.with_suffix(_REMOVED))
        # The file that we hold comes last: from then on others may make it anew.
        for ending in (LOCK, _USE):
            folder.with_suffix(ending).unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
