"""Sessions of browsers that were signed out before their end: files below the root folder, until they would have ended.

All servers of a cluster know of them within two seconds, the one that was told at once, and also after a restart.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final

from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.documents.store import DocumentExists, DocumentMissing

_FOLDER: Final = "ended-sessions"
_FRESH_S: Final = 2.0


class EndedSessions:
    """The sessions that have ended early. Safe to share between threads and processes.

    Args:
        root: the cluster's root folder.
        clock: seconds since the epoch.
    """

    def __init__(self, root: Path, clock: Callable[[], float] = time.time) -> None:
        self._store = FileStore(root, _FOLDER, follows_links=False)
        self._clock = clock
        self._lock = Lock()
        self._names: frozenset[str] = frozenset()
        self._listed_s = float("-inf")

    def add(self, session_id: str, ends: int) -> None:
        """End a session, durably.

        Args:
            ends: when it would have ended by itself, in seconds since the epoch.
        """
        with self._lock:
            with suppress(DocumentExists):
                self._store.create(_name(session_id, ends), b"{}\n")
            self._forget_past()
            self._list()

    def has(self, session_id: str, ends: int) -> bool:
        with self._lock:
            if time.monotonic() - self._listed_s >= _FRESH_S:
                self._list()
            return _name(session_id, ends) in self._names

    def _list(self) -> None:
        self._names = frozenset(self._store.names())
        self._listed_s = time.monotonic()

    def _forget_past(self) -> None:
        for name in self._store.names():
            ends = name.partition("-")[0]
            if ends.isdecimal() and int(ends) < self._clock():
                with suppress(DocumentMissing):
                    self._store.remove(name)


def _name(session_id: str, ends: int) -> str:
    return f"{ends}-{hashlib.sha256(session_id.encode()).hexdigest()}"
