"""The watch over the outbox: a master looks which entries are due, and starts a process that sees to them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from parallelrun_core.service.pacing import Every
from parallelrun_core.service.telemetry import logger
from parallelrun_master.outbox.entries import attempts_of, job_of, owed

if TYPE_CHECKING:
    from pathlib import Path

    from parallelrun_core.store.registry import Registry

_EVERY_S: Final = 1.0
_MOST_DELIVERIES: Final = 100
_LONGEST_S: Final = 300.0
_OURS: Final = "PARALLELRUN_"


class Watch:
    """Sees to all ends that are owed in one folder, next to other masters.

    Args:
        module: what the process runs.
        order: what it reads, for these names, at this time of Redis.
    """

    def __init__(
        self, notes: Path, registry: Registry, module: str, order: Callable[[list[str], float], bytes]
    ) -> None:
        self._notes = notes
        self._registry = registry
        self._module = module
        self._order = order
        self._every = Every(_EVERY_S)
        self._due: dict[str, float] = {}
        """By name, on the monotonic clock: when those are due that have been tried."""
        self._process: subprocess.Popen[bytes] | None = None
        self._names: list[str] = []
        self._began = 0.0

    def check(self) -> None:
        """Do what can be done at once; raises one of `CONNECTION_ERRORS` while Redis is away."""
        now = time.monotonic()
        if not self._every.is_due(now) or self._is_busy(now):
            return
        names = owed(self._notes)
        self._due = {name: self._due[name] for name in names if name in self._due}
        due = [name for name in names if self._due.get(name, 0.0) <= now]
        if due:
            self._start(sorted(due, key=self._place_of)[:_MOST_DELIVERIES], now)

    def _place_of(self, name: str) -> tuple[float, str, int]:
        """Return the order of an entry: those that were never tried first, then those that are due for longest; of one
        job, its earlier end."""
        return self._due.get(name, 0.0), *(job_of(name) or ("", 0))

    def _is_busy(self, now: float) -> bool:
        """Return whether the process works; what it has left is due when it says."""
        if self._process is None:
            return False
        if self._process.poll() is None:
            if now - self._began < _LONGEST_S:
                return True
            logger().warning(f"{self._notes.name}_take_too_long")
            self._process.kill()
            self._process.wait()
        self._process = None
        of_redis = self._registry.now()
        for name in self._names:
            if (attempts := attempts_of(self._notes, name)) is not None:
                self._due[name] = now + max(attempts.next_at - of_redis, _EVERY_S)
        return False

    def _start(self, names: list[str], now: float) -> None:
        order = self._order(names, self._registry.now())
        # -P: what is in the current folder must not be imported. Nothing of ours that is secret goes along.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "parallelrun_core.service.launch", self._module],
            stdin=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if not name.startswith(_OURS)},
        )
        self._process, self._names, self._began = process, names, now
        if process.stdin is not None:
            with suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(order)
