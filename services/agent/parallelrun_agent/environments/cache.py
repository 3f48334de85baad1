"""The environments that a node keeps: so many at most, those that were used last, and never fewer than are in use.

Whoever uses one holds a shared lock on the file `<name>.use` beside it, whose time says when that was. Whoever removes
one holds it alone, and first moves the environment away: it is whole, or not there.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

_USE: Final = ".use"
_REMOVED: Final = ".removed"


class InUse:
    """Keeps an environment, made or yet to be made, from being removed until it is closed."""

    def __init__(self, folder: Path) -> None:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._fd = os.open(folder.with_suffix(_USE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_SH)  # held alone only for a moment
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
        if _move_away(folder):
            removed.append(folder.name)
    for left in environments.glob(f"*{_REMOVED}"):  # also of a process that was killed here
        shutil.rmtree(left, ignore_errors=True)
    return removed


def _used(folder: Path) -> float:
    """When it was used last; when it was made, if nobody has said."""
    for path in (folder.with_suffix(_USE), folder):
        with suppress(OSError):
            return path.stat().st_mtime
    return 0.0


def _move_away(folder: Path) -> bool:
    """Move an environment to where nobody looks for it, unless it is in use; whether it was moved."""
    try:
        fd = os.open(folder.with_suffix(_USE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.rename(folder.with_suffix(_REMOVED))
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
