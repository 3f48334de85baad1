"""Cancels jobs: the request is recorded in the job's folder, durably, and then carried out on Redis."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from parallelrun_core.folder.job_folder import job_folder
from parallelrun_core.intake.cancelling import cancel
from parallelrun_core.service import telemetry

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis

log = telemetry.logger()


class Cancels:
    """Cancels jobs. Safe to share between threads."""

    def __init__(self, root: Path, redis: Redis) -> None:
        self._root = root
        self._redis = redis

    def cancel(self, job_id: str) -> None:
        """Cancel a job that has not ended; of a pipeline, also the jobs of its steps. Again, it changes nothing.

        It stays canceled, whatever Redis forgets.

        Raises:
            NotFound: there is no such job.
            Conflict: it has ended otherwise, or its output is being put together.
        """
        cancel(self._redis, job_folder(self._root, job_id))
        log.info("job_canceled", job_id=job_id)
