"""Files that the worker writes for people: the script's prints, its own log, and the worker's.

Each may be on a disk that is full: what the disk doesn't take is lost, and whoever wrote it is none the wiser. None
grows without end.
"""

from __future__ import annotations

import errno
import io
import os
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    _Entry = tuple[float, str, str, tuple[object, ...]]
    """Of a line that is not in the file yet: when, level, message, and what is to be put into it."""

DISK_TROUBLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
"""Errors that may pass by themselves, and are nobody's fault who writes there."""
MAX_BYTES = 64 << 20
_SETTLE_EVERY_S = 1.0
_FLUSH_BYTES = 1 << 14


class _LogFile(io.FileIO):
    """What the disk doesn't take is lost, and the script that printed it is none the wiser."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except OSError as error:
            if error.errno not in DISK_TROUBLE:
                raise
            return memoryview(data).nbytes


def forgiving(fd: int, like: Any) -> io.TextIOWrapper:
    """A stream to this file, line by line, so that print() doesn't fail a mini-batch because the disk is full."""
    return io.TextIOWrapper(
        io.BufferedWriter(_LogFile(fd, "w", closefd=False)),
        encoding=like.encoding,
        errors="backslashreplace",
        line_buffering=True,
    )


class LineFile:
    """Lines `time|LEVEL|pid|thread|message` (reference §5), gathered for a moment, so that they cost next to nothing.

    Args:
        path: its folder is made, and the file at the first line.
        level: with WARNING, lines of level INFO are left out.
        max_bytes: after that it says that it is full, and takes no more.
        errors: a file that gets a copy of each line of level ERROR.
    """

    def __init__(self, path: str, *, level: str = "INFO", max_bytes: int = MAX_BYTES, errors: str = "") -> None:
        self._path = path
        self._errors = LineFile(errors, max_bytes=max_bytes) if errors else None
        self._left_out = "INFO" if level == "WARNING" else ""
        self._left = max_bytes
        self._entries: list[_Entry] = []
        self._size = 0
        self._settled_at = float("-inf")
        self._second = 0
        self._stamp = ""
        self._tail = f"|{os.getpid()}|{threading.get_ident()}|"

    def write(self, level: str, message: str, *args: object, at_once: bool = False) -> None:
        """Add a line; with `at_once` it is in the file when this returns.

        The message is put together with its `args`, if there are any, as `message % args` when it goes to the file:
        between two short mini-batches that takes longer than it does then.
        """
        if self._left <= 0 or level == self._left_out:
            return
        entry = (time.time(), level, message, args)
        if level == "ERROR" and self._errors is not None:
            self._errors._take(entry)
        self._entries.append(entry)
        self._size += len(message)
        if at_once or self._size > _FLUSH_BYTES:
            self.flush()

    def _take(self, entry: _Entry) -> None:
        """Write this now, as it is."""
        if self._left > 0:
            self._entries.append(entry)
            self.flush()

    def _line(self, entry: _Entry) -> str:
        now, level, message, args = entry
        second = int(now)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(second))
        text = message % args if args else message
        if "\n" in text:
            text = text.replace("\n", "\n    ")
        return f"{self._stamp},{int((now - second) * 1000):03d}|{level}{self._tail}{text}\n"

    @property
    def is_due(self) -> bool:
        """It is time to `settle`: for the first time, or again."""
        return time.monotonic() - self._settled_at > _SETTLE_EVERY_S

    def settle(self) -> None:
        """Write what was gathered, and let nothing be due for a while."""
        self._settled_at = time.monotonic()
        self.flush()

    def flush(self) -> None:
        """Write what was gathered; never raises for the disk's sake."""
        data = "".join(map(self._line, self._entries)).encode("utf-8", "backslashreplace")
        self._entries, self._size = [], 0
        if not data:
            return
        self._left -= len(data)
        if self._left <= 0:
            data += b"This log is full: nothing more is written to it.\n"
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                os.write(fd, data)
            finally:
                os.close(fd)
        except OSError:
            pass
