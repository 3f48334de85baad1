"""The jobs whose outputs another job can read: where people see only what is their own, those of the same person; and
none that was deleted before.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.documents.schema import decode
from parallelrun_core.errors import CorruptLog, NewerSchema
from parallelrun_core.layout import DELETED, RECORD, jobs_of


class _Owned(msgspec.Struct, frozen=True):
    """The fields of `job.json` that say whose a job is."""

    schema: int
    owner: str = ""


class _Deleted(msgspec.Struct, frozen=True):
    """The fields of the mark of a deletion that say when it was set."""

    schema: int
    at: float = 0.0


class Readability(Enum):
    """A job's outputs can be read by another job, or why they can't."""

    READABLE = "readable"
    UNSEEN = "unseen"
    """The job is somebody else's, where people see only what is their own, or its record can't be read."""
    DELETED = "deleted"


class ReadableJobs:
    """Decides about jobs, about each of them once. Safe to share between threads.

    Args:
        root: the cluster's root folder.
        only_owner: the person whose jobs alone count; None: anybody's.
        deleted_before: seconds since the epoch; a job that was deleted later still counts. None: no deleted job does.
    """

    def __init__(self, root: Path, *, only_owner: str | None = None, deleted_before: float | None = None) -> None:
        self._jobs: Final = jobs_of(root)
        self._only_owner: Final = only_owner
        self._deleted_before: Final = deleted_before
        self._decided: Final[dict[str, Readability]] = {}

    @property
    def admitted(self) -> list[str]:
        """Return the jobs that were asked about, and whose outputs can be read."""
        return [job_id for job_id, standing in [*self._decided.items()] if standing is Readability.READABLE]

    def standing(self, job_id: str) -> Readability:
        """Return whether the outputs of a job can be read, or why they can't."""
        standing = self._decided.get(job_id)
        if standing is None:
            standing = self._decided[job_id] = self._decide(job_id)
        return standing

    def _decide(self, job_id: str) -> Readability:
        if not self._is_owned(job_id):
            return Readability.UNSEEN
        return Readability.DELETED if self._was_deleted(job_id) else Readability.READABLE

    def _is_owned(self, job_id: str) -> bool:
        if self._only_owner is None:
            return True
        path = self._jobs / job_id / RECORD
        try:
            return decode(path.read_bytes(), _Owned, path).owner == self._only_owner
        except (OSError, CorruptLog, NewerSchema):
            return False

    def _was_deleted(self, job_id: str) -> bool:
        path = self._jobs / job_id / DELETED
        try:
            at = decode(path.read_bytes(), _Deleted, path).at
        except FileNotFoundError:
            return False
        except (OSError, CorruptLog, NewerSchema):
            at = 0.0
        return self._deleted_before is None or at <= self._deleted_before
