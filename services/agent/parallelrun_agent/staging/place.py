"""The places where a node stages: one cache for all jobs of all agents here, and a tree for each job."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from functools import cached_property
from pathlib import Path
from typing import Final

from parallelrun_agent.environments.cache import check_cache
from parallelrun_agent.staging.cache import StageCache
from parallelrun_agent.staging.crash_recovery import lock_of, locked
from parallelrun_agent.users.places import let_through
from parallelrun_agent.users.worker_user import WorkerUser

_PRIVATE: Final = 0o700
_FOR_THE_JOB: Final = 0o750


class StagePlace:
    """Nothing is created before the first job needs it.

    Args:
        folder: the node's cache folder. Trees are in it, too: what is in them are links into the cache.
        max_bytes: what may be kept there; 0: half of what is free, and of what is kept there, when the first job
            needs it.
        are_jobs_apart: whether workers are other users, who must not put anything in the folder's place.
    """

    def __init__(self, folder: Path, max_bytes: int, *, are_jobs_apart: bool = False) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._are_jobs_apart = are_jobs_apart

    @cached_property
    def cache(self) -> StageCache:
        """The cache.

        Raises:
            OSError: it can't be created, or somebody else could put something into it, or in its place.
        """
        return StageCache(self._own_folder, self._max_bytes)

    @cached_property
    def _own_folder(self) -> Path:
        self._folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        if self._are_jobs_apart:
            check_cache(self._folder)
        if self._folder.stat().st_uid != os.geteuid():
            raise OSError(f"{self._folder} belongs to another user: give this agent another --cache-dir")
        return self._folder

    def make_tree(self, job_id: str, user: WorkerUser) -> Path:
        """The folder for what is staged for a job, which its workers can read.

        Raises:
            OSError: it can't be created.
        """
        tree = self._trees / job_id
        tree.mkdir(mode=_PRIVATE, exist_ok=True)
        if user.is_other:
            for above in (self._folder, self._trees.parent, self._trees):
                let_through(above)
            user.share(tree, _FOR_THE_JOB)
        return tree

    @cached_property
    def _trees(self) -> Path:
        """The folder of this agent's trees, locked while it lives; those of dead agents are removed."""
        above = self._own_folder / "staged"
        above.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        with locked(above):  # or another agent could take the new one for abandoned
            for tree in above.iterdir():
                _remove_if_abandoned(tree)
            trees = above / secrets.token_hex(8)
            trees.mkdir(mode=_PRIVATE)
            lock_of(trees)  # until this process ends
        return trees


def _remove_if_abandoned(trees: Path) -> None:
    fd = os.open(trees, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(trees, ignore_errors=True)
    except BlockingIOError:
        return  # its agent lives
    finally:
        os.close(fd)
