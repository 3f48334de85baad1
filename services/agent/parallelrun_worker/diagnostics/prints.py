"""Marks of when, and for which mini-batch, a worker has printed: by them, logs of all workers are merged by time.

What scripts print stays as it is, byte by byte, so its times are in files beside the worker's own log.
"""

from __future__ import annotations

import os
import time

from parallelrun_worker.log_files import LineFile

_EVERY_S = 0.1
"""Lines of a mini-batch that follow each other sooner share a mark."""
_FLUSH_EVERY_S = 1.0


class PrintMarks:
    """Lines `time|INFO|pid|thread|position|mini-batch`: where each stream was when something was printed.

    A script that prints nothing costs nothing here.

    Args:
        path: the beginning of the paths of the files; empty: there are none.
    """

    def __init__(self, path: str) -> None:
        self.mini_batch = -1
        """The mini-batch that runs; -1: none, or several at once."""
        self.stdout, self.stderr, self.logger = (
            StreamMarks(self, path and f"{path}.{name}.marks") for name in ("stdout", "stderr", "logger")
        )

    def flush(self) -> None:
        for marks in (self.stdout, self.stderr, self.logger):
            marks.lines.flush()


class StreamMarks:
    def __init__(self, prints: PrintMarks, path: str) -> None:
        self.lines = LineFile(path)
        self._prints = prints
        self._pid = os.getpid() if path else 0
        self._add = self.lines.often("INFO", "%d|%d")
        self._mini_batch, self._until, self._flush_at = -2, 0.0, 0.0

    def note(self, stream: int | str) -> None:
        """Mark the present end of the stream if its time or mini-batch is another one than that of the last mark.

        Args:
            stream: its descriptor, or its path; one that isn't there yet is empty.
        """
        now, mini_batch = time.monotonic(), self._prints.mini_batch
        if (mini_batch == self._mini_batch and now < self._until) or os.getpid() != self._pid:
            return
        self._mini_batch, self._until = mini_batch, now + _EVERY_S
        try:
            position = os.stat(stream).st_size
        except FileNotFoundError:
            position = 0
        self._add(position, mini_batch)
        if now >= self._flush_at:
            self._flush_at = now + _FLUSH_EVERY_S
            self.lines.flush()
