"""The tries of a job that has ended, as the pictures of it need them."""

from __future__ import annotations

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult
from parallelrun_core.service.telemetry import logger
from parallelrun_master.reports.advice import LEAST_KEPT

log = logger()


def keep_tries(folder: JobFolder, result: JobResult) -> None:
    """Store the history of the job's tries beside its logs, so that nobody waits for it (`core/tries/snapshot.py`)."""
    if result.progress.decided + result.progress.retried < LEAST_KEPT:
        return
    try:
        # Numpy is imported by the few leaders that get here.
        from parallelrun_core.tries.snapshot import keep_of

        keep_of(folder)
    except Exception as error:  # the job has ended well without
        log.warning("tries_not_kept", job_id=folder.job_id, error=repr(error))
