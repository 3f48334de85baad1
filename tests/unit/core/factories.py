"""Outcomes for tests that care about one or two of their fields, and what tests look at."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.wire.outcome import Failure, Outcome


def outcome(mini_batch: int = 0, **fields: Any) -> Outcome:
    """A decision that succeeded with one row, unless told otherwise."""
    settings: dict[str, Any] = {
        "generation": 0, "status": "done", "token": "node-0/a.1", "tries": 1, "node": "node", "process": "process000",
        "part": "node-0.process000", "offset": 0, "length": 5, "crc": 1, "items": 1, "rows": 1,
        "started": 1.0, "elapsed_s": 0.1, "run_s": 0.1, "process_s": 0.1,
    }  # fmt: skip
    return Outcome(mini_batch=mini_batch, **{**settings, **fields})


def failed(
    mini_batch: int = 0, *, message: str = "ValueError: bad", traceback: str = "Traceback", **fields: Any
) -> Outcome:
    """A decision that failed."""
    settings: dict[str, Any] = {"status": "failed", "part": "", "length": 0, "crc": 0, "rows": 0}
    failure = Failure("RUN_EXCEPTION", message, traceback)
    return outcome(mini_batch, **{**settings, "failure": failure, **fields})


def noted_syncs(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The inodes that are synced from now on."""
    synced, fsync = set[int](), os.fsync

    def noted(fd: int) -> None:
        fsync(fd)
        synced.add(os.fstat(fd).st_ino)

    monkeypatch.setattr(os, "fsync", noted)
    return synced


def names_in(folder: Path) -> list[str]:
    """What is in a folder."""
    return sorted(entry.name for entry in folder.iterdir())


def open_descriptors() -> list[str]:
    """The file descriptors of this process."""
    return names_in(Path("/proc/self/fd"))
