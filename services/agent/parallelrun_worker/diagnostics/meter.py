"""The meter of tries: their use of memory and input, and what they wait for, as the kernel counts it for the process.

To ask for it takes tens of microseconds, as long as a mini-batch without work. So tries that follow each other at once
are measured together: the first of them that ends `_EVERY_S` after the last measurement is given all that the group has
read, and the peak of the group. That is about a thousandth of the process's time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from parallelrun_worker.frames import TICKET, Use, pack_use

_EVERY_S = 0.02
_MAX_STATUS = 1 << 14
"""A user may be in hundreds of groups, and all of them come before the memory."""
_RESET_PEAK = b"5"
"""For clear_refs: the high-water mark of memory begins anew at what the process has now. See proc(5)."""


class Meter:
    """Measures the process that it is in. Where the kernel doesn't allow that, everything is unknown.

    Where it only doesn't let the high-water mark begin anew, the peak is that since the process began.
    """

    def __init__(self) -> None:
        self.own_bytes = 0
        """What the process has read since the last measurement for the engine, not for the user. For callers to add."""
        self.due_at = float("inf")
        """When a try is to be measured again, by time.perf_counter()."""
        self.unmeasured = pack_use(Use())
        """Of a try that ends before: the memory that the process had after the last measurement, nothing read."""
        self._read = self._tickets = 0
        self._counts = (0, 0, 0, 0)
        self._count: Callable[[], tuple[int, int, int, int]]
        self._status = self._io = self._clear_refs = -1
        self._clear_refs_id = (-1, -1)

    def begin(self) -> None:
        """Begin a try: what was read and allocated before is of none."""
        self._status = _opened("/proc/self/status", os.O_RDONLY)
        self._io = _opened("/proc/self/io", os.O_RDONLY)
        self._clear_refs = _opened("/proc/self/clear_refs", os.O_WRONLY)
        if self._clear_refs >= 0:
            self._clear_refs_id = _identity(self._clear_refs)
        self._count = _counter()
        self.measure(0)
        self.due_at = 0.0

    def measure(self, tickets: int) -> bytes:
        """Return what was used since the last measurement, as `frames.pack_use` packs it.

        Args:
            tickets: how many the process has read so far.
        """
        try:
            status = os.pread(self._status, _MAX_STATUS, 0)
            io = os.pread(self._io, 512, 0)
            peak, read = _number_after(b"VmHWM:", status) << 10, _number_after(b"rchar:", io)
            remaining = _number_after(b"VmRSS:", status) << 10 if self._begin_peak_anew() else peak
            minor, major, voluntary, involuntary = counts = self._count()
        except (OSError, ValueError, IndexError):
            self.unmeasured, self.due_at = pack_use(Use()), float("inf")
            return self.unmeasured
        own_bytes = self.own_bytes + len(status) + (tickets - self._tickets) * TICKET.size
        minor_before, major_before, voluntary_before, involuntary_before = self._counts
        used = Use(
            peak_bytes=peak,
            read_bytes=max(0, read - self._read - own_bytes),
            minor_faults=minor - minor_before,
            major_faults=major - major_before,
            voluntary_switches=voluntary - voluntary_before,
            involuntary_switches=involuntary - involuntary_before,
        )
        self._read, self._counts, self._tickets, self.own_bytes = read, counts, tickets, len(io)
        self.unmeasured = pack_use(Use(remaining, 0, 0, 0, 0, 0))
        self.due_at = time.perf_counter() + _EVERY_S
        return pack_use(used)

    def _begin_peak_anew(self) -> bool:
        """Return whether the high-water mark begins anew now."""
        if self._clear_refs < 0:
            return False
        try:
            # The script may have closed a descriptor that it had not opened, and may have a file of its own there now.
            if _identity(self._clear_refs) == self._clear_refs_id:
                os.pwrite(self._clear_refs, _RESET_PEAK, 0)
                return True
        except OSError:
            pass  # the kernel doesn't let us
        self._clear_refs = -1
        return False


def _counter() -> Callable[[], tuple[int, int, int, int]]:
    """A function that counts the last four of `Use` since the process began, in all of its threads: in a microsecond.

    The module `resource` would do, but its name is a script's to give to a module of its own.
    """
    import ctypes

    longs = (ctypes.c_long * 64)()  # as on every 64-bit Linux: 18 of them, and what a C library may reserve
    getrusage = ctypes.PyDLL(None).getrusage  # which keeps the interpreter's lock: it would have to wait for it again

    def count() -> tuple[int, int, int, int]:
        getrusage(0, longs)
        return longs[8], longs[9], longs[16], longs[17]

    return count


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def _opened(path: str, flags: int) -> int:
    try:
        return os.open(path, flags)
    except OSError:
        return -1


def _number_after(name: bytes, text: bytes) -> int:
    """Raises ValueError or IndexError: it isn't there."""
    at = text.index(name) + len(name)
    return int(text[at : at + 24].split(None, 1)[0])
