"""The environments that a node keeps: a limited number, the most recently used ones, and all that are in use.

Each process that uses or builds one holds a shared lock on the file `<name>.use` beside it, whose time is that of the
last use. A process that removes one holds the lock exclusively, and first moves the environment away: it is complete,
or not there. The lock file is removed, too, so a lock counts only if its file still has the name.

All that counts is beside an environment, in a folder of the agent's: what packages have put into it, the agent neither
reads nor follows. It removes such a folder with the rights of whoever has built it.
"""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from parallelrun_agent.users.home import who_else_writes
from parallelrun_agent.users.worker_user import SAME_USER, WorkerUser

if TYPE_CHECKING:
    from parallelrun_agent.users.choice import Uids

LOCK: Final = ".lock"
"""Ending of the file that is locked by the one process which builds the environment, and uses it already."""
READY: Final = ".ready"
"""Ending of the file that marks the environment as complete."""
_USE: Final = ".use"
_OF_ITS_BUILDER: Final = 0o775
REMOVED: Final = ".removed"
"""Ending of what was moved out of the way, until it is removed."""


def check_cache(folder: Path) -> None:
    """Make sure that nobody but this user and root could put something else into a folder, or in its place.

    Raises:
        PermissionError: somebody could; the message says what to do.
    """
    reason = who_else_writes(folder)
    if not reason and folder.exists() and folder.stat().st_uid != os.geteuid():
        reason = f"{folder} belongs to root"
    if reason:
        raise PermissionError(f"{reason}; {_CACHE_ADVICE}")


_CACHE_ADVICE: Final = "what jobs use is kept there: give the agent a folder of its own with --cache-dir"


class InUse:
    """Keeps an environment, built or yet to be built, from being removed until it is closed."""

    def __init__(self, folder: Path) -> None:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._fd = _locked(folder, fcntl.LOCK_SH)  # an exclusive lock is held only for a moment
        with suppress(OSError):
            os.utime(self._fd)

    def fileno(self) -> int:
        """The descriptor of the lock, for a process that is to hold it, too."""
        return self._fd

    def close(self) -> None:
        """Give up the hold on the environment. Twice does no harm."""
        if self._fd >= 0:
            with suppress(OSError):
                os.utime(self._fd)
            os.close(self._fd)
            self._fd = -1


def is_ready(folder: Path) -> bool:
    return folder.with_suffix(READY).exists()


def mark_ready(folder: Path) -> None:
    """Mark an environment as complete. Its builder can't."""
    folder.with_suffix(READY).touch(mode=0o644)


def make_place(folder: Path, builder: WorkerUser) -> int:
    """Make the folder of an environment for its builder; returns a descriptor for the lock of whoever builds it.

    Raises:
        OSError: it can't be made.
    """
    folder.mkdir(mode=0o755, exist_ok=True)
    builder.share(folder, _OF_ITS_BUILDER)
    return os.open(folder.with_suffix(LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def prune(environments: Path, max_environments: int, uids: Uids | None = None) -> list[str]:
    """Remove the least recently used ones, until `max_environments` are left; returns their names.

    Those in use stay, however many they are, and so do those that can't be removed.
    """
    folders = [folder for folder in environments.iterdir() if folder.is_dir() and folder.suffix != REMOVED]
    removed = []
    for folder in sorted(folders, key=_used)[: max(0, len(folders) - max_environments)]:
        if move_away(folder):
            removed.append(folder.name)
    for mark in environments.glob(f"*{_USE}"):  # of one that could not be built
        if not mark.with_suffix("").exists():
            move_away(mark.with_suffix(""))
    for leftover in environments.glob(f"*{REMOVED}"):  # also of a process that was killed here
        _builder_of(leftover, uids).remove(leftover)
    return removed


def builders_of(environments: Path, uids: Uids | None) -> Counter[int]:
    """Count the environments by the uid of their builder; those of the agent's own user are not counted."""
    folders = [folder for folder in environments.iterdir() if folder.is_dir() and folder.suffix != REMOVED]
    return Counter(builder.uid for folder in folders if (builder := _builder_of(folder, uids)).is_other)


def _builder_of(folder: Path, uids: Uids | None) -> WorkerUser:
    """Return the user whose group the agent has given to the folder of an environment."""
    try:
        group = folder.lstat().st_gid
    except OSError:
        return SAME_USER
    return WorkerUser(group) if uids and group in uids else SAME_USER


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


def move_away(folder: Path) -> bool:
    """Move an environment, or what else has such a lock, out of the way, unless it is in use.

    Returns:
        Whether it was moved, and is to be removed under its new name.
    """
    with unused(folder) as is_unused:
        if not is_unused:
            return False
        try:
            folder.with_suffix(READY).unlink(missing_ok=True)
            if folder.exists():
                folder.rename(folder.with_suffix(REMOVED))
            # The file that we hold locked comes last: from then on others may build the environment again.
            for ending in (LOCK, _USE):
                folder.with_suffix(ending).unlink(missing_ok=True)
        except OSError:
            return False
    return True


@contextmanager
def unused(folder: Path) -> Iterator[bool]:
    """Keep others from beginning to use a folder, for a moment; false: somebody uses it already."""
    try:
        fd = _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        os.close(fd)
