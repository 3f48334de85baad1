"""Files that the worker writes for people: the script's output and log, and the worker's own log.

What a full disk doesn't take is lost without an error, and no file grows without limit.
"""

from __future__ import annotations

import errno
import io
import os
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    _Entry = tuple[float, str, tuple[object, ...]]
    """A line that is not in the file yet: its time, its format, and the values for it."""

DISK_TROUBLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
"""Errors that may pass by themselves, and that the writing code has not caused."""
MAX_BYTES = 64 << 20
_FLUSH_EVERY_S = 1.0
_GATHERED = 250
"""Lines that wait at most."""


class _LogFile(io.FileIO):
    """A log file of which the disk may lose a part, without an error in the script that printed it."""

    note: Callable[[], None] | None = None
    """Called before each write."""

    def write(self, data: Any) -> int:
        if self.note is not None:
            self.note()
        try:
            return super().write(data) or 0
        except OSError as error:
            if error.errno not in DISK_TROUBLE:
                raise
            return memoryview(data).nbytes


def forgiving(fd: int, like: Any, note: Callable[[], None] | None = None) -> io.TextIOWrapper:
    """A line-buffered stream to this file; print() fails no mini-batch because the disk is full.

    Args:
        note: called before each write.
    """
    file = _LogFile(fd, "w", closefd=False)
    file.note = note
    return io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding=like.encoding,
        errors="backslashreplace",
        line_buffering=True,
    )


class LineFile:
    """Lines `time|LEVEL|pid|thread|message` (reference §5), gathered for a moment, so that they cost almost nothing.

    Args:
        path: the file; it and its folder are created for the first line.
        level: with WARNING, lines of level INFO are left out.
        max_bytes: the limit, at which a last line says that the log is full.
        errors: a file that gets a copy of each line of level ERROR.
    """

    def __init__(self, path: str, *, level: str = "INFO", max_bytes: int = MAX_BYTES, errors: str = "") -> None:
        self._path = path
        self._errors = LineFile(errors, max_bytes=max_bytes) if errors else None
        self._left_out = "INFO" if level == "WARNING" else ""
        self._left = max_bytes
        self._entries: list[_Entry] = []
        self.due_at = 0.0
        """When it is time to `settle`, by time.perf_counter()."""
        self._tail = f"|{os.getpid()}|{threading.get_ident()}|"

    def write(self, level: str, message: str, *, at_once: bool = False) -> None:
        """Add a line; with `at_once` it is in the file when this returns."""
        if level == self._left_out:
            return
        entry = (time.time(), self._form("%s", "%s"), (level, _visible(message).replace("\n", "\n    ")))
        if level == "ERROR" and self._errors is not None:
            self._errors._entries.append(entry)
            self._errors.flush()
        self._entries.append(entry)
        if at_once:
            self.flush()

    def often(self, level: str, message: str) -> Callable[..., None]:
        """A function that adds the line `message % numbers` when it is called with the numbers.

        The line is formatted later, when it goes to the file: between two short mini-batches, that would cost too much.
        """
        if level == self._left_out:
            return lambda *_: None
        form, entries, now = self._form(level, message), self._entries, time.time

        def add(*numbers: float) -> None:
            entries.append((now(), form, numbers))
            if len(entries) > _GATHERED:
                self.flush()

        return add

    def _form(self, level: str, message: str) -> str:
        return f"%s|{level}{self._tail}{message}\n"

    def flush_regularly(self) -> None:
        """Write what was gathered; for a while, nothing is due."""
        self.due_at = time.perf_counter() + _FLUSH_EVERY_S
        self.flush()

    def flush(self) -> None:
        """Write what was gathered; an error of the disk is ignored."""
        entries = self._entries[:]
        self._entries.clear()
        if not entries or self._left <= 0:
            return
        data = _text(entries).encode("utf-8", "backslashreplace")
        self._left -= len(data)
        if self._left <= 0:
            data += b"This log is full: nothing more is written to it.\n"
        try:
            fd = self._opened()
            try:
                os.write(fd, data)
            finally:
                os.close(fd)
        except OSError:
            pass

    def _opened(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            return os.open(self._path, flags, 0o644)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            return os.open(self._path, flags, 0o644)


def _visible(message: str) -> str:
    """Return what can't be seen in it is escaped: a class of exceptions may have any name."""
    return "".join(
        char if char in "\n\t" or char.isprintable() else char.encode("unicode_escape").decode() for char in message
    )


def _text(entries: list[_Entry]) -> str:
    lines = []
    second, date = -1, ""
    stamp, begin, end = "", 0.0, 0.0  # of a millisecond: short mini-batches share it
    for now, form, words in entries:
        if not begin <= now < end:
            if int(now) != second:
                second = int(now)
                date = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(second))
            millisecond = int((now - second) * 1000)
            stamp, begin, end = f"{date},{millisecond:03d}", now, second + (millisecond + 1) / 1000
        lines.append(form % (stamp, *words))
    return "".join(lines)
