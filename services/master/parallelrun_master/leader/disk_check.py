"""Compares, once, the disk that a job's first mini-batches need on its nodes with what is free there."""

from __future__ import annotations

import os
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from parallelrun_core.checks.disk_need import NodeDisk, too_small
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.folder.manifest import read_manifest
from parallelrun_core.mltable.input_plan import load_plans
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.wire.message import decode, described_of, files_of, is_described
from parallelrun_master.planning.apart import WatchedThread

_MINI_BATCHES: Final = 5
_FILES: Final = 100
"""Files of a mini-batch whose sizes are asked for: each may cost a request of a store."""


class DiskCheck:
    """Finds out in the background how large the first mini-batches are, if they are copied to the nodes.

    Args:
        folder: of the job.
        patience_s: how long a file system may not answer.
    """

    def __init__(self, folder: Path, patience_s: float) -> None:
        self._find = partial(_mini_batch_bytes, folder)
        self._apart: WatchedThread | None = WatchedThread(patience_s)

    def news(self, scheduled: int, disks: tuple[NodeDisk, ...]) -> str:
        """Return, once it is known, that a disk is too small; otherwise an empty text.

        Args:
            scheduled: number of mini-batches that are durable.
            disks: those of the nodes that the job may have.
        """
        if self._apart is None or not scheduled or not disks:
            return ""
        measured = self._apart.ask(self._find)
        if measured is None:
            return ""
        self.close()
        return too_small(max(measured, default=0), disks)

    def close(self) -> None:
        """Look no further."""
        if self._apart is not None:
            self._apart.close()
            self._apart = None


def _mini_batch_bytes(folder: Path) -> list[int]:
    """Return the sizes of the first mini-batches; none, if they are not copied or that can't be known."""
    try:
        if not any(plan.is_staged or plan.is_copied for plan in load_plans(folder) or []):
            return []
        return [_size(entry.raw) for entry in islice(read_manifest(folder), _MINI_BATCHES)]
    except (OSError, ParallelRunError):  # whoever needs them says so
        return []


def _size(raw: bytes) -> int:
    message = decode(raw)
    pieces = described_of(message).pieces if is_described(message) else []
    if pieces:
        return sum(max(0, piece.end - piece.start) for piece in pieces)
    files = list(files_of(message))
    sizes = [storage_of(os.fsdecode(path)).version(path).size_bytes for path in files[:_FILES]]
    return sum(sizes) * len(files) // max(1, len(sizes))
