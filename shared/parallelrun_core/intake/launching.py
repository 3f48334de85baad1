"""Makes a job out of a record, without anybody who submits it: a pipeline's step, what a schedule or an endpoint runs.

All checks were made when the pipeline, the schedule or the deployment was accepted, and the code is in the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from parallelrun_core.folder.control import effective_control
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.spec.pipeline_steps import LeafStep, leaf_steps
from parallelrun_core.store.registry import BETWEEN_OUTPUTS, Registry
from parallelrun_core.wire.states import NO_ORDERS, JobState

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


def register(
    redis: Redis, folder: JobFolder, *, new: JobRecord | None = None, registry: Registry | None = None
) -> None:
    """Make an accepted job known to Redis and ask for a leader, unless it has gone on already.

    Args:
        registry: of that Redis, if the caller has one.
        new: what was submitted, of a job that the caller has just created: that it has not gone on needs no look then.

    Raises one of `CONNECTION_ERRORS` when Redis is away.
    """
    # RQ takes long to import, and a server starts without it.
    from parallelrun_core.store.rq.wake import ask_for_leader, asking_for_first_leader

    registry, job_id = registry or Registry(redis), folder.job_id
    if new is not None:
        # Nobody knows it yet who could have paused it: only the pipeline of a step has orders before.
        orders = NO_ORDERS if new.parent is None else effective_control(folder, new).orders
        asking = asking_for_first_leader(job_id)
        registry.add_job(job_id, submitted=new.submitted, output=claim_of(folder, new), orders=orders, also=asking)
    elif folder.result() is None and registry.state(job_id) in (None, JobState.QUEUED):
        record = folder.record()
        output, generation = claim_of(folder, record), folder.generation()
        orders = effective_control(folder, record).orders
        registry.add_job(job_id, submitted=record.submitted, output=output, generation=generation, orders=orders)
        ask_for_leader(redis, job_id)


def claim_of(folder: JobFolder, record: JobRecord) -> str | None:
    """Return what the registry is told that an accepted job will publish; None if nothing that others may name.

    Raises:
        CorruptLog: its spec can't be read.
    """
    if not record.is_pipeline:
        is_elsewhere = record.spec.get("output") or record.spec.get("append_row_to")
        return folder.named_output(record.job_spec()) if is_elsewhere else None
    names = [name for _, name in named_outputs(folder, leaf_steps(record.pipeline_spec()))]
    return BETWEEN_OUTPUTS.decode().join(names) or None


def named_outputs(folder: JobFolder, steps: list[LeafStep]) -> Iterator[tuple[LeafStep, str]]:
    """The files with rows that steps are going to publish at places which others may name, too."""
    for step in steps:
        # Where a step's own folder will be makes no difference: nobody may name what is in it.
        if (name := folder.named_output(step.spec)) is not None:
            yield step, name
