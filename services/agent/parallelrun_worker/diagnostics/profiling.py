"""The user's functions under one of Python's profilers (`profiling_module`, reference §1.4)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from parallelrun_worker.diagnostics.profile_data import profile_data

_DUMP_EVERY_S = 30.0


class Profiler:
    """Calls functions, and writes their profile to a file now and then, in case the worker is killed.

    Args:
        module: `cProfile` or `profile`.
        path: the file; viewers for `pstats` read it. The same as JSON is beside it (profile_data.py).
        code: the folder of the job's code.
    """

    def __init__(self, module: str, path: str, code: str) -> None:
        from importlib import import_module

        self._profile: Any = import_module(module).Profile
        self._is_slow = module == "profile"
        self._current = self._profile()
        self._before: Any = None
        self._path = path
        self._code = code
        self._dump_at = time.monotonic() + _DUMP_EVERY_S

    def call(self, function: Callable[..., object], *arguments: object) -> object:
        """Call the function under the profiler; returns or raises what it does."""
        try:
            return self._current.runcall(function, *arguments)
        finally:
            if self._is_slow:  # `profile` can't be used twice
                self._take()
            if time.monotonic() >= self._dump_at:
                self.dump()

    def _take(self) -> None:
        """Add the counts of the present profiler, and replace it: after that it can't go on."""
        import pstats

        try:
            stats = pstats.Stats(self._current)
        except TypeError:  # it has counted nothing
            return
        self._current = self._profile()
        self._before = stats if self._before is None else self._before.add(stats)

    def dump(self) -> None:
        """Write the profile so far."""
        self._take()
        if self._before is None:
            return
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._before.dump_stats(self._path)
            self._write(profile_data(self._before.stats, self._code))
        except OSError:
            pass  # a full disk must not fail a mini-batch
        self._dump_at = time.monotonic() + _DUMP_EVERY_S

    def _write(self, data: bytes) -> None:
        """Replace the content of the file with the JSON, which may be one that the agent has made for this process."""
        fd = os.open(f"{self._path}.json", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            os.pwrite(fd, data, 0)
            os.ftruncate(fd, len(data))
        finally:
            os.close(fd)
