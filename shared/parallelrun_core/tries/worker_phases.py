"""Phases of workers: the rows about `init()` and `shutdown()` in the report of tries, without all the others.

The report is text, and of a million mini-batches 300 MB of it. The few rows that have to do with this are looked for by
the beginning of their status, at the speed of memory.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from parallelrun_core.untrusted.paths import open_ordinary

_MARK = b",ENTRY_SCRIPT_"
_BLOCK = 1 << 20
_STATUSES = ("INIT_DONE", "INIT_EXCEPTION", "INIT_TIMEOUT", "SHUTDOWN_DONE", "SHUTDOWN_EXCEPTION")
_NEEDED = ("Process", "Process Start Time", "Elapsed Seconds", "Status")


class WorkerPhase(NamedTuple):
    """A worker's init() or shutdown() that has ended."""

    node: str
    process: str
    is_init: bool
    begin: float
    """Seconds since the epoch."""
    seconds: float
    has_failed: bool


class FollowedReport:
    """The report of one job, of which each reading returns what is new. A report that can't be read has nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.at = 0
        """The byte up to which it was read."""
        self._columns: list[int] = []

    def new(self, may_go_on: Callable[[], bool]) -> Iterator[WorkerPhase]:
        """Yield the phases that were not yet returned, a block of the file at a time for as long as `may_go_on()`."""
        try:
            file = open_ordinary(self._path)
        except OSError:
            return
        with file:
            if os.fstat(file.fileno()).st_size < self.at:
                self.at = 0  # damaged: all of it is looked at again
            if not self._columns and not self._read_header(file.fileno()):
                return
            while may_go_on():
                block = os.pread(file.fileno(), _BLOCK, self.at)
                end = block.rfind(b"\n") + 1
                if not end:
                    return
                self.at += end
                yield from self._phases(block[:end])

    def left_bytes(self) -> tuple[int, int]:
        """Return how many bytes are not read yet, and how many there are."""
        with suppress(OSError):
            size = self._path.stat().st_size
            return max(0, size - self.at), size
        return 0, 0

    def _read_header(self, fd: int) -> bool:
        header = os.pread(fd, 4096, 0).partition(b"\n")[0].decode(errors="replace").split(",")
        if not all(name in header for name in _NEEDED):
            return False
        self._columns = [header.index(name) for name in _NEEDED]
        return True

    def _phases(self, block: bytes) -> Iterator[WorkerPhase]:
        at = 0
        while (mark := block.find(_MARK, at)) >= 0:
            begin, end = block.rfind(b"\n", 0, mark) + 1, block.find(b"\n", mark)
            at = end
            with suppress(ValueError, IndexError, csv.Error):
                cells = next(csv.reader([block[begin:end].decode(errors="replace")]))
                process, started, seconds, status = (cells[column] for column in self._columns)
                name = status.removeprefix("ENTRY_SCRIPT_")
                if name in _STATUSES and name != status:
                    node, _, worker = process.partition("/")
                    yield WorkerPhase(
                        node,
                        worker,
                        name.startswith("INIT"),
                        _epoch(started),
                        float(seconds),
                        not name.endswith("DONE"),
                    )


def _epoch(text: str) -> float:
    return datetime.fromisoformat(f"{text}+00:00").timestamp()
