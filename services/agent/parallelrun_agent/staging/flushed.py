"""What of the cache a crash of the machine may have left without its content.

Objects get their names without waiting for the disk, which would take longer than fetching them. So after a power cut
a file can be there with the right name and size, and with zeros in it. Linux writes out what is older than half a
minute. All that was touched in the last minutes before the machine went down is therefore fetched again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_NAME: Final = ".boot"
_UNSAFE_S: Final = 120.0
"""Several times what the kernel waits (`vm.dirty_expire_centisecs`, 30 s by default)."""


def forget_unflushed(folder: Path, boot_id: str = "") -> None:
    """Remove the files of a folder that may have lost content, if the machine was started since it was last used.

    Args:
        boot_id: of the running system; found out by default.

    Raises:
        OSError: the folder can't be read or written to.
    """
    now = boot_id or _running()
    noted = folder.parent / _NAME
    with suppress(FileNotFoundError):
        if now and noted.read_text() == now:
            return
    changed = dict(_changes(folder))
    limit = max(changed.values(), default=0.0) - _UNSAFE_S
    for path, changed_at in changed.items():
        if changed_at > limit:
            with suppress(FileNotFoundError):
                os.unlink(path)
    new = noted.with_name(f"{_NAME}-{os.getpid()}")
    new.write_text(now)
    new.replace(noted)


def _running() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""  # better fetched once more


def _changes(folder: Path) -> Iterator[tuple[str, float]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                yield entry.path, entry.stat(follow_symlinks=False).st_ctime
