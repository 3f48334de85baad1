"""Recovery of the cache after a crash of the machine, which may have left files without their content.

Objects get their names without waiting for the disk, which would take longer than fetching them. So after a power cut
a file can be there with the right name and size, and with zeros in it. Linux writes out what is older than half a
minute. All that was fetched in the last minutes before the machine went down is therefore fetched again.

No file is looked at to find out when that was: agents note every few seconds that they live. The note may be older
than the crash, never younger, so it can only make more doubtful than has to be. What is doubted goes by the time of a
file's content, which neither using it nor removing the links of dead agents touches.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_NAME: Final = ".boot"
_UNSAFE_S: Final = 120.0
"""Several times what the kernel waits (`vm.dirty_expire_centisecs`, 30 s by default)."""


class Doubt(NamedTuple):
    """Files that were fetched in between may have lost their content."""

    since: float
    until: float

    def covers(self, fetched_at: float) -> bool:
        """Return whether a file with this time is not to be believed."""
        return self.since < fetched_at < self.until


NONE: Final = Doubt(0.0, 0.0)


def doubt_of(folder: Path, last_alive_at: float, boot_id: str = "") -> Doubt:
    """Return what of a cache is in doubt, for all agents that share its folder; quick, however much there is.

    Args:
        last_alive_at: when an agent last noted that it lives; 0: nobody knows.
        boot_id: of the running system; found out by default.

    Raises:
        OSError: the folder can't be written to.
    """
    now = boot_id or _running()
    with LockedFolder(folder):
        noted, doubt = _read(folder)
        if now and noted == now:
            return doubt
        since = last_alive_at - _UNSAFE_S if last_alive_at else 0.0
        if doubt.until:  # that of an earlier crash, of which not everything was seen
            since = min(since, doubt.since)
        return _write(folder, now, since)


def end_doubt(folder: Path, doubt: Doubt) -> None:
    """All that was in doubt is gone.

    Raises:
        OSError: the folder can't be written to.
    """
    with LockedFolder(folder):
        noted, present = _read(folder)
        if present == doubt:
            _write(folder, noted)


def _read(folder: Path) -> tuple[str, Doubt]:
    with suppress(FileNotFoundError, ValueError):
        boot_id, since, until = (folder / _NAME).read_text().rsplit(" ", 2)
        return boot_id, Doubt(float(since), float(until))
    return "", NONE


def _write(folder: Path, boot_id: str, since: float | None = None) -> Doubt:
    new = folder / f"{_NAME}-new"
    with new.open("w") as file:
        # By the clock of the file system: all that is fetched from now on is younger.
        doubt = NONE if since is None else Doubt(since, os.fstat(file.fileno()).st_mtime)
        file.write(f"{boot_id} {doubt.since} {doubt.until}")
    new.replace(folder / _NAME)
    return doubt


def _running() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""  # better fetched once more


class LockedFolder:
    """A folder that this process has locked for the length of the context, against others that do so, too."""

    def __init__(self, folder: Path) -> None:
        self._fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
