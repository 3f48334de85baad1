"""What an Engine says while it builds an image, written into the logs of each job that waits for it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final

MOST_BYTES: Final = 4 << 20
_CUT: Final = "\n… cut off here\n"


class BuildLog:
    """Safe to share between threads. A log that can't be written is left out: a build doesn't fail for it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._text = ""
        self._bytes = 0
        self._files: set[Path] = set()

    def also_to(self, files: Iterable[Path]) -> None:
        """From now on also write into these, beginning with what was said before."""
        with self._lock:
            for file in set(files) - self._files:
                self._files.add(file)
                _append(file, self._text)

    def write(self, text: str) -> None:
        """Write what was said."""
        with self._lock:
            if self._bytes > MOST_BYTES:
                return
            self._bytes += len(text.encode(errors="replace"))
            if self._bytes > MOST_BYTES:
                text = _CUT
            self._text += text
            for file in self._files:
                _append(file, text)


def _append(file: Path, text: str) -> None:
    with suppress(OSError):
        file.parent.mkdir(exist_ok=True)
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with open(fd, "w", errors="replace") as opened:
            opened.write(text)
