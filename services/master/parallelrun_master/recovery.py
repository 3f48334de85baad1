"""What a term begins with: what earlier ones have decided, and what agents have finished that Redis has forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parallelrun_core.folder.job_folder import JobFolder, JobRecord
from parallelrun_core.folder.manifest import read_closing
from parallelrun_master.journals import finished
from parallelrun_master.leadership import Leadership
from parallelrun_master.led_job import LedJob
from parallelrun_master.ledger import Ledger
from parallelrun_master.policy.error_groups import ErrorGroups
from parallelrun_master.reports import Reports

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis


def recover(redis: Redis, leadership: Leadership, folder: JobFolder, record: JobRecord, reports: Reports) -> LedJob:
    """Read what earlier terms have decided; returns the job, to be continued from there.

    Raises:
        FileExistsError: this term has begun before.
        NewerSchema: a newer release has written into the folder.
        CorruptLog: what was accepted is not there.
    """
    queue, reopenings = leadership.queue, folder.reopenings()
    reopening = reopenings[-1] if reopenings else None
    queue.generation = reopening.generation if reopening is not None else 0
    errors = ErrorGroups(reports.mask)
    ledger = Ledger(folder.path, queue, queue.term, reports.tries, errors, generation=queue.generation)
    leadership.durable_before = ledger.decided.count
    for each in reopenings:  # a retry that was interrupted is still to be done
        if each.retry_failed:
            ledger.reopen(each.generation, each.mini_batches)
    job = LedJob(redis, leadership, folder, record, ledger=ledger, reports=reports, reopening=reopening)
    if queue.term > 1 and not queue.checkpoint():
        _recover_journals(job)
    _continue_progress(job, resumed=record.resumed.mini_batches if record.resumed else 0)
    reports.say(f"Term {queue.term} begins.")
    return job


def _recover_journals(job: LedJob) -> None:
    """Redis has forgotten the job: others have led, and nothing is published. Take what agents have finished."""
    recovered = job.ledger.recover(finished(job.folder, job.ledger.decided, job.queue.generation))
    if recovered:
        job.log.warning("journals_adopted", mini_batches=recovered)
        job.reports.say(f"Recovered {recovered:,} mini-batches that agents finished before Redis forgot the job.")


def _continue_progress(job: LedJob, *, resumed: int) -> None:
    """Count on from what the last term has shown, where the folder doesn't say it."""
    earlier, progress = job.registry.status(job.job_id).progress, job.ledger.progress
    progress.retried, progress.lost = max(progress.retried, earlier.retried), earlier.lost
    progress.running = earlier.running
    progress.resumed = resumed
    if (closing := read_closing(job.folder.path)) is not None:
        progress.scheduled = closing.mini_batches
        progress.items_scheduled = max(closing.items, progress.items_scheduled)  # of a table, what was read
        progress.published, progress.listing_done = earlier.published, True
