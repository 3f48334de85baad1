"""What a master does about owed notices: it looks which are due, and starts a process that sends them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from parallelrun_core.service.pacing import Every
from parallelrun_core.service.telemetry import logger
from parallelrun_master.notices.delivery import Order
from parallelrun_master.notices.owed import attempts_of, job_of, owed

if TYPE_CHECKING:
    from parallelrun_core.store.registry import Registry
    from parallelrun_master.settings import MasterSettings

_EVERY_S: Final = 1.0
_MOST: Final = 100
_LONGEST_S: Final = 300.0
_OURS: Final = "PARALLELRUN_"


class Teller:
    """Sees to the notices of all jobs, next to other masters."""

    def __init__(self, settings: MasterSettings, registry: Registry) -> None:
        self._settings = settings
        self._registry = registry
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
        names = owed(self._settings.root)
        self._due = {name: self._due[name] for name in names if name in self._due}
        due = [name for name in names if self._due.get(name, 0.0) <= now]
        if due:
            self._start(sorted(due, key=self._order_of)[:_MOST], now)

    def _order_of(self, name: str) -> tuple[float, str, int]:
        """Those that were never tried come first, then those that are due for longest; of one job, its earlier end."""
        return self._due.get(name, 0.0), *(job_of(name) or ("", 0))

    def _is_busy(self, now: float) -> bool:
        """Whether the process works; what it has left is due when it says."""
        if self._process is None:
            return False
        if self._process.poll() is None:
            if now - self._began < _LONGEST_S:
                return True
            logger().warning("notices_take_too_long")
            self._process.kill()
            self._process.wait()
        self._process = None
        of_redis = self._registry.now()
        for name in self._names:
            if (attempts := attempts_of(self._settings.root, name)) is not None:
                self._due[name] = now + max(attempts.next_at - of_redis, _EVERY_S)
        return False

    def _start(self, names: list[str], now: float) -> None:
        settings = self._settings
        order = Order(
            root=str(settings.root),
            secrets_dir=str(settings.secrets_dir) if settings.secrets_dir else None,
            allow=settings.notify_allow,
            log_format=settings.log_format,
            now=self._registry.now(),
            names=names,
        )
        # -P: what is in the current folder must not be imported. Nothing of ours that is secret goes along.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "parallelrun_core.service.launch", "parallelrun_master.notices.delivery"],
            stdin=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if not name.startswith(_OURS)},
        )
        self._process, self._names, self._began = process, names, now
        if process.stdin is not None:
            with suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(msgspec.json.encode(order))
