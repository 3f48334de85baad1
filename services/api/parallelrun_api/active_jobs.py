"""Specs of the jobs that have not ended, for those who want to take away something that they use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.unreadable import UNREADABLE
from parallelrun_core.store.registry import Registry


def specs(root: Path, registry: Registry) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each job that has not ended, and its spec; those whose folders nobody can read are left out.

    Raises RedisError.
    """
    for job_id in registry.active_jobs():
        folder = JobFolder(root, job_id)
        try:
            # A leader records how its job has ended before it tells Redis.
            if not folder.has_ended:
                yield job_id, folder.record().spec
        except UNREADABLE:
            continue
