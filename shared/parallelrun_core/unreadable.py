"""Jobs whose folder can't be read as things stand: they are left alone, the log says so once, and the others go on."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Final

from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.telemetry import logger

UNREADABLE: Final = (NotFound, NewerSchema, CorruptLog, OSError)
"""What reading a job's folder may raise, of which no other job need know."""


class LeftAlone:
    """The jobs that somebody leaves alone, with what the log says of each: once, not at every look.

    Args:
        root: the folder of all jobs; another one than the API's is the commonest reason why there is none.
    """

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._told: dict[str, str] = {}

    def tell(self, job_id: str, error: Exception) -> None:
        """Say why this job is left alone, unless that was the last thing that was said of it."""
        action = action_of(error)
        if self._told.get(job_id) != action:
            self._told[job_id] = action
            logger().error(action, job_id=job_id, reason=str(error), root=self._root)

    def forget(self, job_id: str) -> None:
        """It could be read."""
        self._told.pop(job_id, None)

    def keep(self, job_ids: Container[str]) -> None:
        """Forget all but these."""
        self._told = {job_id: action for job_id, action in self._told.items() if job_id in job_ids}


def action_of(error: Exception) -> str:
    """How the log calls it."""
    if isinstance(error, NotFound):
        return "job_folder_missing"
    return "job_too_new" if isinstance(error, NewerSchema) else "job_unreadable"
