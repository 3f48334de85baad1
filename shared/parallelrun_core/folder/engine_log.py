"""The engine's own logs of a job, below logs/sys/: lines `time|LEVEL|process id|thread|message` (reference §5).

They are for the job's user; operators of the services have `telemetry`. Don't log here what happens a million times:
each line is in its file when the call returns.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from parallelrun_core.layout import Logs
from parallelrun_core.untrusted.sanitize import indented

_MAX_BYTES = 64 << 20


class EngineLog:
    """A log, `logs/sys/<name>.txt`; warnings and errors are copied to `logs/sys/warning/` and `logs/sys/error/`.

    Lines that can't be written are lost: a disk too full for a log must not fail anything.

    Args:
        level: with WARNING, lines of level INFO are left out.
    """

    def __init__(self, logs: Path, name: str, *, level: str = "INFO") -> None:
        self._sys = Logs(logs).sys
        self._name = f"{name}.txt"
        self._left_out = "INFO" if level == "WARNING" else ""

    def info(self, message: str) -> None:
        self._say("INFO", message)

    def warning(self, message: str) -> None:
        self._say("WARNING", message, "warning")

    def error(self, message: str) -> None:
        self._say("ERROR", message, "error")

    def _say(self, level: str, message: str, copy: str = "") -> None:
        if level == self._left_out:
            return
        now = time.time()
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now))
        line = f"{stamp},{int(now % 1 * 1000):03d}|{level}|{os.getpid()}|{threading.get_ident()}|{indented(message)}\n"
        data = line.encode()
        for folder in [self._sys, *([self._sys / copy] if copy else [])]:
            _append(folder / self._name, data)


def _append(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            if os.fstat(fd).st_size < _MAX_BYTES:
                os.write(fd, data)
        finally:
            os.close(fd)
    except OSError:
        pass
