"""The room that a root folder takes, by kind, and its largest jobs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.answers.retention import ClusterUsage, JobUsage
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
from parallelrun_core.retention.report import last_report, sweep_of
from parallelrun_core.retention.requests import rules_of

_LARGEST: Final = 20


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
        rules=msgspec.structs.asdict(rules) if rules is not None else {},
        last_sweep=sweep_of(last) if last is not None else None,
    )
