"""Metrics that a script logs: one file of lines for each worker process, which `core/folder/metrics.py` reads.

A line is JSON: `{"time": …, "name": …, "value": …, "step": …}`; with `param` or `tag` in place of `name`, what MLflow
calls so. It is in the file when `log` returns, so it survives
the process; it is on the disk within a second, and at the end of the process. What a try has logged stays when the
mini-batch fails or is run again, as in the reference system. Nothing here fails a mini-batch: what is too much, or
doesn't fit on the disk, is left out and counted.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import sys
import threading
import time
from typing import Any, ClassVar

from parallelrun_worker.script_api.entry_script import EntryScript

MAX_BYTES = 8 << 20
"""Of a process's file."""
MAX_LINE = 32 << 10
MAX_NAME = 255
BURST = 5_000
"""Metrics that may come at once."""
RATE_PER_S = 50.0
"""How many more each second."""
_SYNC_EVERY_S = 1.0


def log_metric(name: str, value: Any, step: int | None = None) -> None:
    """Record a number, a text, a truth value, a list or a mapping under a name, for the job.

    The same name may be logged again: the job has all values, in the order of their times. Anything else than these
    types is recorded as its text.
    """
    MetricLog.of_this_process().log(name, value, step)


class MetricLog:
    """The metrics of one process.

    Args:
        path: its file, which is created for the first metric. Empty: outside of a job, metrics are remembered only.
    """

    _instance: ClassVar[MetricLog | None] = None

    def __init__(self, path: str, *, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self.logged: dict[str, Any] = {}
        """What this process has logged: the value of each name, or a list of them if there were several."""
        self._several: set[str] = set()
        self._left = max_bytes
        self._tokens = float(BURST)
        self._refilled = time.monotonic()
        self._dropped = 0
        self._fd = -1
        self._torn = False
        self._is_unsynced = False
        self._synced = time.monotonic()
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forked)

    @classmethod
    def of_this_process(cls) -> MetricLog:
        """The one that the worker's metrics go to."""
        if cls._instance is None:
            job = EntryScript._settings
            folder = os.path.join(job["logs"], "user", "metrics", job["node"]) if job.get("logs") else ""
            cls._instance = cls(os.path.join(folder, f"{job['process']}.jsonl") if folder else "")
            atexit.register(cls._instance.close)
        return cls._instance

    def log(self, name: str, value: Any, step: int | None = None, *, time_s: float | None = None) -> None:
        """Add one; see `log_metric`. `time_s`: seconds since the epoch, by default now."""
        at_s = time.time() if time_s is None else time_s
        point: dict[str, Any] = {"time": at_s, "name": str(name)[:MAX_NAME], "value": plain(value)}
        if step is not None:
            point["step"] = int(step)
        with self._lock:
            if self._append(point["name"], point):
                self._remember(point["name"], point["value"])

    def note(self, kind: str, name: str, value: str | None) -> None:
        """Record a `param` or a `tag` of the job; None: it has the tag no longer."""
        with self._lock:
            self._append(name, {"time": time.time(), kind: str(name)[:MAX_NAME], "value": value})

    def _append(self, name: str, fields: dict[str, Any]) -> bool:
        """Write a line, unless that would be too much; returns whether it was not."""
        line = json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace")
        if len(line) > MAX_LINE or not self._is_in_time() or len(line) >= self._left:
            self._drop(name)
            return False
        if self.path and self._write(self._notice() + line + b"\n"):
            self._sync(_SYNC_EVERY_S)
        return True

    def close(self) -> None:
        """Put everything on the disk; more may be logged afterwards."""
        with self._lock:
            if self._dropped and self.path:
                self._write(self._notice())
            self._sync(0.0)

    def _is_in_time(self) -> bool:
        """Return whether another one may come now."""
        now = time.monotonic()
        self._tokens = min(float(BURST), self._tokens + (now - self._refilled) * RATE_PER_S)
        self._refilled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _drop(self, name: str) -> None:
        if not self._dropped:
            limits = f"{MAX_LINE} bytes each, {MAX_BYTES >> 20} MiB and {RATE_PER_S:g} a second for each process"
            print(f"[parallelrun] metric {name!r} is left out, as may be others: at most {limits}", file=sys.stderr)
        self._dropped += 1

    def _notice(self) -> bytes:
        """The line that says how many were left out since the last one."""
        if not self._dropped:
            return b""
        notice = b'{"dropped": %d}\n' % self._dropped
        self._dropped = 0
        return notice

    def _remember(self, name: str, value: Any) -> None:
        if name in self._several:
            self.logged[name].append(value)
        elif name in self.logged:
            self._several.add(name)
            self.logged[name] = [self.logged[name], value]
        else:
            self.logged[name] = value

    def _write(self, data: bytes) -> bool:
        """Append; a line that a full disk has cut is ended by the next one."""
        data = b"\n" + data if self._torn else data
        try:
            if self._fd < 0:
                self._fd = self._opened()
                self._left -= os.fstat(self._fd).st_size  # of other processes of the worker
            written = os.write(self._fd, data)
        except OSError:
            self._dropped += 1
            return False
        self._left -= written
        self._torn = written < len(data)
        self._is_unsynced = True
        return True

    def _opened(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        return os.open(self.path, flags, 0o644)

    def _sync(self, every_s: float) -> None:
        now = time.monotonic()
        if self._is_unsynced and now - self._synced >= every_s:
            with contextlib.suppress(OSError):  # it may work the next time
                os.fsync(self._fd)
            self._is_unsynced, self._synced = False, now

    def _forked(self) -> None:
        self._lock = threading.Lock()  # another thread of the parent may have held it


def plain(value: Any) -> Any:
    """A value as JSON has it; of what JSON doesn't have, the text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    for method in ("item", "tolist"):  # numpy's scalars; its arrays
        try:
            return plain(getattr(value, method)())
        except (AttributeError, TypeError, ValueError):
            continue
    return str(value)
