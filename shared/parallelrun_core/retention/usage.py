"""The room that a root folder takes, by kind, and its largest jobs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.layout import (
    asset_files,
    asset_store,
    blobstore_of,
    code_store,
    finished_steps,
    retention_of,
    uploads_of,
)
from parallelrun_core.retention.measuring import Measured, size_of
from parallelrun_core.retention.policy import units_of

_LARGEST: Final = 20


class JobSize(msgspec.Struct, kw_only=True, frozen=True):
    """The room that a job takes, or a pipeline with its steps."""

    job_id: str
    bytes: int
    jobs: int
    """Number of jobs: itself, and those of its steps."""
    ended: float
    """0: it has not ended."""


class RootUsage(msgspec.Struct, kw_only=True, frozen=True):
    """The room that a root folder takes, in bytes."""

    free_bytes: int
    total_bytes: int
    jobs: int
    """Number of jobs, those of steps included."""
    bytes: dict[str, int]
    """By kind: jobs, of which parts and logs, then snapshots, asset_files, assets, steps, uploads, blobs."""
    largest: list[JobSize]


def usage_of(root: Path) -> RootUsage:
    """Measure a root folder. Reads the names and sizes of all its files; what was measured of ended jobs by the last
    sweep counts."""
    facts = Measured(root, retention_of(root)).facts()
    disk = shutil.disk_usage(root)
    units = sorted(units_of(facts).values(), key=lambda unit: unit.bytes, reverse=True)
    return RootUsage(
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
            JobSize(job_id=unit.name, bytes=unit.bytes, jobs=len(unit.members), ended=unit.ended)
            for unit in units[:_LARGEST]
        ],
    )
