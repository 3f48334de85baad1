"""Makes a job out of a record, without anybody who submits it: a pipeline's step, what a schedule or an endpoint runs.

All checks were made when the pipeline, the schedule or the deployment was accepted, and the code is in the store.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from parallelrun_core.folder.control import effective_control
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.intake.output_claims import claim_of
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.states import JobState

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis


def launch(redis: Redis, root: Path, record: JobRecord) -> None:
    """Create the job, durably, and let a master lead it.

    Called again with the same id, it changes nothing but to finish what was interrupted: so whoever derives the id from
    what the job is for (`ids.job_id_from`) makes it once, whatever dies in between.

    Raises one of `CONNECTION_ERRORS` when Redis is away. If the folder was made by then, a master registers the job.
    """
    folder = JobFolder(root, record.job_id)
    with suppress(FileExistsError):
        folder.create_with(record, None)
    register(redis, folder)


def register(redis: Redis, folder: JobFolder) -> None:
    """Make an accepted job known to Redis and ask for a leader, unless it has gone on already.

    Raises one of `CONNECTION_ERRORS` when Redis is away.
    """
    from parallelrun_core.store.rq.wake import ask_for_leader  # RQ takes long to import, and a server starts without it

    registry = Registry(redis)
    if folder.result() is None and registry.state(folder.job_id) in (None, JobState.QUEUED):
        record = folder.record()
        output, generation = claim_of(folder, record), folder.generation()
        orders = effective_control(folder, record).orders
        registry.add_job(folder.job_id, submitted=record.submitted, output=output, generation=generation, orders=orders)
        ask_for_leader(redis, folder.job_id)
