"""Recovery of the cache after a crash of the machine, which may have left files without their content.

Objects get their names without waiting for the disk, which would take longer than fetching them. So after a power cut
a file can be there with the right name and size, and with zeros in it. Linux writes out what is older than half a
minute. All that was fetched in the last minutes before the machine went down is therefore fetched again.

When that was is told by the agents, which note every few seconds that they live. A note may be older than the crash,
never younger, so at worst more files are in doubt than need be. When a file was fetched is the time of its content,
which neither using it nor removing the links of dead agents changes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

_BOOT_ID_FILE: Final = Path("/proc/sys/kernel/random/boot_id")
_NOTE: Final = ".boot"
"""The file in a cache with the boot that it was last used in, and what is in doubt."""
_UNSAFE_S: Final = 120.0
"""Several times what the kernel waits (`vm.dirty_expire_centisecs`, 30 s by default)."""


class Doubt(NamedTuple):
    """The time, in seconds since the epoch, in which files were fetched that may have lost their content."""

    since: float
    until: float
    """0: nothing is in doubt."""

    def covers(self, fetched_at: float) -> bool:
        """Return whether a file that was fetched then is in doubt."""
        return self.since < fetched_at < self.until


NO_DOUBT: Final = Doubt(0.0, 0.0)


def doubt_of(folder: Path, last_alive_at: float, boot_id: str = "") -> Doubt:
    """Return what of a cache is in doubt, for all agents that share its folder; quick, however much there is.

    Args:
        last_alive_at: when an agent last noted that it lives; 0: nobody knows.
        boot_id: the id of this boot of the machine; by default, what the kernel says.

    Raises:
        OSError: the folder can't be written to.
    """
    boot_id = boot_id or _boot_id()
    with locked(folder):
        noted_boot_id, doubt = _read(folder)
        if boot_id and noted_boot_id == boot_id:
            return doubt
        since = last_alive_at - _UNSAFE_S if last_alive_at else 0.0
        if doubt.until:  # that of an earlier crash, of which not everything was seen
            since = min(since, doubt.since)
        return _write(folder, boot_id, since)


def end_doubt(folder: Path, doubt: Doubt) -> None:
    """Note that all files in doubt were removed, unless more are in doubt by now.

    Raises:
        OSError: the folder can't be written to.
    """
    with locked(folder):
        boot_id, noted_doubt = _read(folder)
        if noted_doubt == doubt:
            _write(folder, boot_id)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, for which others wait that do so, too."""
    fd = lock_of(folder)
    try:
        yield
    finally:
        os.close(fd)


def lock_of(folder: Path) -> int:
    """Take the lock of a folder; returns the descriptor that holds it until it is closed."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd


def _read(folder: Path) -> tuple[str, Doubt]:
    with suppress(FileNotFoundError, ValueError):
        boot_id, since, until = (folder / _NOTE).read_text().rsplit(" ", 2)
        return boot_id, Doubt(float(since), float(until))
    return "", NO_DOUBT


def _write(folder: Path, boot_id: str, since: float | None = None) -> Doubt:
    new = folder / f"{_NOTE}-new"
    with new.open("w") as file:
        # By the clock of the file system: all that is fetched from now on is younger.
        doubt = NO_DOUBT if since is None else Doubt(since, os.fstat(file.fileno()).st_mtime)
        file.write(f"{boot_id} {doubt.since} {doubt.until}")
    new.replace(folder / _NOTE)
    return doubt


def _boot_id() -> str:
    try:
        return _BOOT_ID_FILE.read_text().strip()
    except OSError:
        return ""  # better fetched once more
