"""The lease of the provisioner that acts, kept while an engine takes longer to answer than the lease lasts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Final

from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_core.store.provisioning import Provisioning

_LONGEST_S: Final = 60.0
"""For how long: calls of engines have deadlines, and who is stuck in spite of them makes room for another one."""
_PER_LEASE: Final = 4


class LeaseKeeper:
    """Renews a lease from a thread of its own, which begins when it is first needed and ends with the process. It never
    takes back one that was lost.

    Without it, two provisioners would take turns at each call of a slow engine, and neither would remember anything.
    """

    def __init__(self, provisioning: Provisioning, lease_s: float) -> None:
        self._provisioning = provisioning
        self._lease_s = lease_s
        self._until = 0.0
        self._is_over = Event()
        self._thread: Thread | None = None

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep the lease meanwhile, within bounds."""
        self._until = time.monotonic() + _LONGEST_S
        if self._thread is None:
            self._thread = Thread(target=self._run, name="lease", daemon=True)
            self._thread.start()
        try:
            yield
        finally:
            self._until = 0.0

    def stop(self) -> None:
        """Renew nothing any more."""
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.wait(self._lease_s / _PER_LEASE):
            if time.monotonic() < self._until:
                with suppress(*CONNECTION_ERRORS):
                    self._provisioning.stays()
