"""A new file whose bytes go to the disk as they are written, and not through the page cache."""

from __future__ import annotations

import errno
import os
from fcntl import F_GETFL, F_SETFL, fcntl
from pathlib import Path

SYNC_EVERY_BYTES = 64 << 20


class DirectFile:
    """Written once, from its beginning to its end, and far too large to be wanted in memory.

    The page cache costs a copy of every byte, and what is read meanwhile would have to make room there. A file system
    writes past it (`O_DIRECT`) when address, length and offset are multiples of what it asks for, mostly 512 or 4,096
    bytes. From the first write that it refuses, an end of odd length at the latest, the page cache takes the rest.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._direct = self._set_direct(True)
        self._unsynced = 0
        self._is_closed = False

    @property
    def fd(self) -> int:
        """Its descriptor, until it is closed."""
        return self._fd

    def write(self, data: memoryview) -> None:
        """Add these bytes.

        Raises:
            OSError: the disk doesn't take them.
        """
        while data:  # after a short write, the next one takes the rest or says why not
            try:
                count = os.write(self._fd, data)
            except OSError as error:
                if not self._direct or error.errno != errno.EINVAL:
                    raise
                self._direct = self._set_direct(False)
                continue
            data = data[count:]
            self._unsynced += count
        if self._unsynced >= SYNC_EVERY_BYTES:  # there may be a cache all the same, and it should not fill
            os.fdatasync(self._fd)
            self._unsynced = 0

    def sync(self) -> None:
        """Make all of it durable."""
        os.fsync(self._fd)

    def close(self) -> None:
        """Close it, unless that was done."""
        if not self._is_closed:
            self._is_closed = True
            os.close(self._fd)

    def _set_direct(self, is_direct: bool) -> bool:
        """Returns whether writes are direct now; not every file system can do it."""
        flags = fcntl(self._fd, F_GETFL) & ~os.O_DIRECT
        try:
            fcntl(self._fd, F_SETFL, flags | os.O_DIRECT if is_direct else flags)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return False
        return is_direct
