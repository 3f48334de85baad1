"""The lock that lets one sweep work at a time, or keeps all of them out while a backup is made."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from parallelrun_core.layout import PRIVATE_FILE

_LOCK: Final = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold the lock, if nobody else does; a process that is killed gives it up.

    Args:
        folder: that of retention, which is there already.

    Yields:
        False if somebody else holds it.
    """
    fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(fd)
