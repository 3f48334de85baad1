"""The end of a job in its present generation: it may have been reopened since, and Redis may have forgotten that."""

from __future__ import annotations

import errno
from contextlib import suppress

from parallelrun_core.errors import Conflict, Fenced, NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult
from parallelrun_core.intake.reopening import knows_only_earlier_end, queue_again
from parallelrun_core.store.registry import Registry


def check_end(registry: Registry, folder: JobFolder) -> None:
    """Make sure that the end of the job, as Redis knows it, is that of its present generation.

    Raises:
        Fenced: it isn't. The job is queued again, for whoever leads it next.
    """
    if knows_only_earlier_end(registry, folder):
        with suppress(Conflict):  # somebody else was faster
            queue_again(registry, folder)
        raise Fenced("Redis had forgotten that the job was reopened")


def recorded_end(registry: Registry, folder: JobFolder) -> JobResult | None:
    """Return how the job has ended, in the generation that Redis was told of; None while it hasn't.

    Raises:
        OSError: this node doesn't see yet that a later generation has begun. On NFS, that may take a minute.
    """
    if (result := folder.result()) is None:
        return None
    with suppress(NotFound):  # Redis has forgotten the job
        begun = registry.status(folder.job_id)
        if not begun.state.is_terminal and begun.generation > folder.generation():
            why = f"generation {begun.generation} has begun, and can't be seen here yet"
            raise OSError(errno.ESTALE, why, str(folder.path))
    return result
