"""Where a node stages: one cache for all jobs, and a tree for each."""

from __future__ import annotations

import os
import shutil
from functools import cached_property
from pathlib import Path
from typing import Final

from parallelrun_agent.staging.cache import StageCache

_PART_OF_FREE: Final = 0.5


class StagePlace:
    """Nothing is created before the first job needs it.

    Args:
        folder: the node's cache folder. Trees are in it, too: what is in them are links into the cache.
        node: whose trees these are; agents of other nodes may share the folder.
        max_bytes: what may be kept there; 0: half of what is free when the first job needs it.
    """

    def __init__(self, folder: Path, node: str, max_bytes: int) -> None:
        self._folder = folder
        self._trees = folder / "staged" / node
        self._max_bytes = max_bytes

    @cached_property
    def cache(self) -> StageCache:
        """The cache; trees that an earlier agent of this node has left are removed first.

        Raises:
            OSError: it can't be created.
        """
        shutil.rmtree(self._trees, ignore_errors=True)
        self._trees.mkdir(mode=0o700, parents=True, exist_ok=True)
        return StageCache(self._folder, self._max_bytes or int(self._free_bytes() * _PART_OF_FREE))

    def tree(self, job_id: str) -> Path:
        """The folder for what is staged for a job."""
        return self._trees / job_id

    def _free_bytes(self) -> int:
        status = os.statvfs(self._trees)
        return status.f_bavail * status.f_frsize
