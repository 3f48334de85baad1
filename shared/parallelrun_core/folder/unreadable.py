"""Jobs whose folder can't be read at present: they are skipped, the log says so once, and the others go on."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Final

from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.service.telemetry import logger

UNREADABLE: Final = (NotFound, NewerSchema, CorruptLog, OSError)
"""What reading a job's folder may raise; no other job is affected."""


class SkippedJobs:
    """The jobs that a service skips, each logged once, not each time that it is checked.

    Args:
        root: the folder of all jobs; the most common reason why a job has no folder is that this isn't the API's root.
    """

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._reported: dict[str, str] = {}

    def report(self, job_id: str, error: Exception) -> None:
        """Log why this job is skipped, unless that was the last thing logged about it."""
        action = action_of(error)
        if self._reported.get(job_id) != action:
            self._reported[job_id] = action
            logger().error(action, job_id=job_id, reason=str(error), root=self._root)

    def forget(self, job_id: str) -> None:
        """This job could be read."""
        self._reported.pop(job_id, None)

    def keep_only(self, job_ids: Container[str]) -> None:
        """Forget all jobs but these."""
        self._reported = {job_id: action for job_id, action in self._reported.items() if job_id in job_ids}


def action_of(error: Exception) -> str:
    """The log's name for the reason."""
    if isinstance(error, NotFound):
        return "job_folder_missing"
    return "job_too_new" if isinstance(error, NewerSchema) else "job_unreadable"
