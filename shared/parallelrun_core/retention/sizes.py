"""The room that a root folder takes, by kind and by its largest jobs; and what the last sweep has measured by owner."""

from __future__ import annotations

import shutil
from pathlib import Path
from threading import Lock
from typing import Final

from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.answers.retention import ClusterUsage, JobUsage
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.unreadable import UNREADABLE
from parallelrun_core.layout import (
    asset_files,
    asset_store,
    blobstore_of,
    code_store,
    finished_steps,
    retention_of,
    uploads_of,
)
from parallelrun_core.lru_cache import LruCache
from parallelrun_core.retention.measuring import Measured, remembered, size_of
from parallelrun_core.retention.policy import units_of
from parallelrun_core.retention.report import last_report, sweep_of
from parallelrun_core.retention.requests import rules_of
from parallelrun_core.retention.rules import to_record
from parallelrun_core.store.usage import week_of

_OWNERS: Final = 100_000
_LARGEST: Final = 20


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


def usage_of(root: Path) -> ClusterUsage:
    """Measure a root folder. Reads the names and sizes of all its files; what was measured of ended jobs by the last
    sweep counts."""
    facts = Measured(root, retention_of(root)).facts()
    disk, rules, last = shutil.disk_usage(root), rules_of(root), last_report(root)
    units = sorted(units_of(facts).values(), key=lambda unit: unit.bytes, reverse=True)
    return ClusterUsage(
        free_bytes=disk.free,
        total_bytes=disk.total,
        jobs=len(facts),
        bytes={
            "jobs": sum(job.bytes for job in facts),
            "parts": sum(job.parts_bytes for job in facts),
            "logs": sum(job.logs_bytes for job in facts),
            "snapshots": size_of(code_store(root)),
            "asset_files": size_of(asset_files(root)),
            "assets": size_of(asset_store(root)),
            "steps": size_of(finished_steps(root)),
            "uploads": size_of(uploads_of(root)),
            "blobs": size_of(blobstore_of(root)),
        },
        largest=[
            JobUsage(
                job=unit.name,
                bytes=unit.bytes,
                jobs=len(unit.members),
                ended=rfc3339(unit.ended) if unit.ended else None,
            )
            for unit in units[:_LARGEST]
        ],
        rules=to_record(rules) if rules is not None else {},
        last_sweep=sweep_of(last) if last is not None else None,
    )
