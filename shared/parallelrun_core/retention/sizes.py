"""Bytes of the folders of jobs by their owner, as the last sweep has measured them."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Final

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.unreadable import UNREADABLE
from parallelrun_core.layout import retention_of
from parallelrun_core.lru_cache import LruCache
from parallelrun_core.retention.measuring import remembered
from parallelrun_core.store.usage import week_of

_OWNERS: Final = 100_000


class SizesByOwner:
    """The sizes of a root folder's jobs that have ended. Safe to share between threads."""

    def __init__(self, root: Path) -> None:
        self._root: Final = root
        self._folder: Final = retention_of(root)
        self._owners: Final = LruCache[str](_OWNERS)
        self._stamp: int | None = None
        self._sizes: dict[str, int] = {}
        self._by_week: dict[tuple[str, str], int] = {}
        self._lock: Final = Lock()

    def all(self) -> dict[str, int]:
        """Return the bytes by owner; the empty one is whoever runs the server. Empty: no sweep was made yet."""
        with self._lock:
            self._read()
            return dict(self._sizes)

    def by_week(self) -> dict[tuple[str, str], int]:
        """Return the bytes by the week in which jobs have ended, such as `2026-W48`, and their owner."""
        with self._lock:
            self._read()
            return dict(self._by_week)

    def _read(self) -> None:
        """Read what the last sweep has measured, unless it was read already."""
        stamp = _stamp_of(self._folder)
        if stamp == self._stamp:
            return
        sizes: dict[str, int] = {}
        by_week: dict[tuple[str, str], int] = {}
        for fact in remembered(self._folder):
            if not fact.deleted and (owner := self._owner_of(fact.job_id)) is not None:
                sizes[owner] = sizes.get(owner, 0) + fact.bytes
                if fact.ended:
                    key = week_of(fact.ended), owner
                    by_week[key] = by_week.get(key, 0) + fact.bytes
        self._sizes, self._by_week, self._stamp = sizes, by_week, stamp

    def _owner_of(self, job_id: str) -> str | None:
        owner = self._owners.get(job_id)
        if owner is None:
            try:
                owner = self._owners.put(job_id, JobFolder(self._root, job_id).record().owner)
            except UNREADABLE:
                return None
        return owner


def _stamp_of(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0
