"""Makes sure, before a job's first worker starts on a node, that its code is what was submitted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from parallelrun_core.code.stored import DamagedCode, check_snapshot
from parallelrun_core.service.telemetry import logger
from parallelrun_core.service.threads import started_thread
from parallelrun_core.untrusted.sanitize import visible
from parallelrun_core.wire.outcome import Failure

log = logger()

_AT_ONCE_S: Final = 0.02
"""How long the agent waits for the answer: nearly all code is small."""
_AGAIN_S: Final = 1.0


class JobCode:
    """Checks a stored snapshot in a thread of its own, since the agent's has leases to renew.

    Args:
        changed: called in that thread when it is known what to make of the code.
    """

    def __init__(self, snapshot: Path, changed: Callable[[], None]) -> None:
        self.is_ready = False
        """It is what was submitted."""
        self._failure: Failure | None = None
        self._snapshot = snapshot
        self._changed = changed
        self._closed = threading.Event()
        started_thread("code", self._check).join(_AT_ONCE_S)

    def take_failure(self) -> Failure | None:
        """Why no worker may start; only once."""
        failure, self._failure = self._failure, None
        return failure

    def close(self) -> None:
        """Nobody waits any more."""
        self._closed.set()

    def _check(self) -> None:
        while not self._closed.is_set():
            try:
                check_snapshot(self._snapshot)
            except DamagedCode as damage:
                self._fail(str(damage))
            except (FileNotFoundError, NotADirectoryError) as error:
                self._fail(f"The stored code {self._snapshot} is gone: {error}.")
            except OSError as error:
                log.warning("code_unreadable", snapshot=str(self._snapshot), error=str(error))
                self._closed.wait(_AGAIN_S)
                continue
            else:
                self.is_ready = True
            self._changed()
            return

    def _fail(self, message: str) -> None:
        log.error("code_damaged", snapshot=str(self._snapshot), reason=message)
        self._failure = Failure("CODE_DAMAGED", visible(message))  # with a name that need not be UTF-8
