"""The build log: an Engine's messages while it builds an image, written into the logs of each job that waits for it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Final

from parallelrun_core.errors import ParallelRunError
from parallelrun_core.untrusted.paths import open_beneath

MOST_BYTES: Final = 4 << 20
_CUT: Final = "\n… cut off here\n"


class BuildLog:
    """A log that can't be written is left out: a build doesn't fail for it. `also_to` is for one thread, which waits
    for no volume; `write` for the build's own."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._text = ""
        self._bytes = 0
        self._known: set[Path] = set()
        self._files: set[Path] = set()

    def also_to(self, files: Iterable[Path]) -> None:
        """Write into these logs of jobs as well from now on, beginning with the messages so far."""
        if new := set(files) - self._known:
            self._known |= new
            Thread(target=self._begin, args=(new,), name="log of a build", daemon=True).start()

    def write(self, text: str) -> None:
        with self._lock:
            if self._bytes > MOST_BYTES:
                return
            self._bytes += len(text.encode(errors="replace"))
            if self._bytes > MOST_BYTES:
                text = _CUT
            self._text += text
            for file in self._files:
                _append(file, text)

    def _begin(self, files: Iterable[Path]) -> None:
        with self._lock:
            self._files.update(files)
            for file in files:
                _append(file, self._text)


def _append(file: Path, text: str) -> None:
    job = file.parents[2]
    folders, mine = file.relative_to(job).parts[:-1], str(file.relative_to(job))
    with suppress(OSError, ParallelRunError):
        with suppress(FileExistsError):
            (job / folders[0]).mkdir()  # a job that waits for its nodes may have no leader yet, who writes there first
        logs = open_beneath(job, folders[0], os.O_RDONLY | os.O_DIRECTORY)
        try:
            with suppress(FileExistsError):
                os.mkdir(folders[1], dir_fd=logs)
        finally:
            os.close(logs)
        fd = open_beneath(job, mine, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode=0o644)
        with open(fd, "w", errors="replace") as opened:
            if stat.S_ISREG(os.fstat(fd).st_mode):  # user code may have put a pipe there
                opened.write(text)
