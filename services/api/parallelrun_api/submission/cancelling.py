"""Cancels jobs: the request is recorded in the job's folder, durably, and then carried out on Redis.

Redis may forget it right after the answer, before a leader has recorded the end. The next leader finds it in the
folder.
"""

from __future__ import annotations

from pathlib import Path

from parallelrun_api.submission.submissions import Submissions
from parallelrun_core.errors import Conflict, NotFound
from parallelrun_core.folder.job_folder import job_folder
from parallelrun_core.service import failpoints, telemetry
from parallelrun_core.states import JobState
from parallelrun_core.store.registry import Registry

log = telemetry.logger()


class Cancels:
    """Cancels jobs. Safe to share between threads."""

    def __init__(self, root: Path, registry: Registry, submissions: Submissions) -> None:
        self._root = root
        self._registry = registry
        self._submissions = submissions

    def cancel(self, job_id: str) -> None:
        """Cancel a job that has not ended. It stays canceled, whatever Redis forgets. Again, it changes nothing.

        Raises:
            NotFound: there is no such job.
            Conflict: it has ended otherwise, or its output is being put together.
        """
        folder = job_folder(self._root, job_id)
        folder.record()
        if (result := folder.result()) is not None:
            if result.state is not JobState.CANCELED:
                raise Conflict(f"Job {job_id} is {result.state}: it can't become {JobState.CANCELED}.")
            return
        generation = folder.generation()
        folder.record_cancel(generation)
        failpoints.reach("cancel.recorded")
        try:
            self._move(job_id)
        except Conflict:
            if self._registry.state(job_id) is not JobState.CANCELED:
                folder.withdraw_cancel(generation)
                raise
        log.info("job_canceled", job_id=job_id)

    def _move(self, job_id: str) -> None:
        try:
            self._registry.move(job_id, JobState.CANCELED)
        except NotFound:  # Redis has forgotten the job: a leader is asked to record its end
            self._submissions.register(job_id)
            self._registry.move(job_id, JobState.CANCELED)
