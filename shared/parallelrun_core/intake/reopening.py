"""Lets a job that has ended go on, in a new generation: recorded first in the folder, durably, then on Redis.

If whoever does it dies in between, it is done again with the same numbers, and finished.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from parallelrun_core.errors import Conflict, NotFound
from parallelrun_core.folder.control import effective_control
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import Reopening
from parallelrun_core.intake.launching import claim_of
from parallelrun_core.store.registry import Registry

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis

_SEEN_LATE_S: Final = 75.0
"""NFS believes for a minute that a file is missing."""


def reopen(registry: Registry, folder: JobFolder, reopening: Reopening) -> None:
    """Begin a generation of a job that has ended and is retired. No leader is asked for.

    Raises one of `CONNECTION_ERRORS` when Redis is away; a master finds what is recorded by then.

    Raises:
        Conflict: another request has just begun it, or the job has not ended.
    """
    if folder.result() is not None:
        folder.reopen(reopening)
    queue_again(registry, folder)


def let_go_on(redis: Redis, folder: JobFolder) -> None:
    """Queue a job that has no end in its present generation, if Redis doesn't know that it has begun.

    Raises one of `CONNECTION_ERRORS` when Redis is away.
    """
    from parallelrun_core.store.rq.wake import ask_for_leader

    registry = Registry(redis)
    if is_forgotten(registry, folder):
        with suppress(Conflict):  # somebody else was faster
            queue_again(registry, folder)
        ask_for_leader(redis, folder.job_id, attempt=f"again-{folder.generation()}")


def queue_again(registry: Registry, folder: JobFolder) -> None:
    """Queue a job in its present generation. Whoever leads it does so no more.

    Raises:
        Conflict: Redis knows that it has not ended.
    """
    record, generation = folder.record(), folder.generation()
    registry.reopen(
        folder.job_id,
        submitted=record.submitted,
        generation=generation,
        output=claim_of(folder, record),
        orders=effective_control(folder, record).orders,
    )


def is_forgotten(registry: Registry, folder: JobFolder) -> bool:
    """Return whether Redis knows nothing of a job that is to go on, or not that it was reopened.

    A job that has ended is taken off the list of active ones once its result is recorded. If Redis has done that in the
    job's present generation, there is a result, which this node may see a minute late; only when it doesn't come at all
    has the disk lost it.
    """
    # Redis first: the leader of a job that ends records the result, and only then takes it off the list.
    try:
        status = registry.status(folder.job_id)
    except NotFound:
        return folder.result() is None
    if not status.state.is_terminal or registry.is_active(folder.job_id) or folder.result() is not None:
        return False
    may_be_late = status.generation >= folder.generation()
    return not may_be_late or registry.now() - (status.ended or 0.0) > _SEEN_LATE_S


def knows_only_earlier_end(registry: Registry, folder: JobFolder) -> bool:
    """Return whether the end that Redis knows of a job is that of an earlier generation: it has lost that it was
    reopened."""
    status = registry.status(folder.job_id)
    return status.state.is_terminal and status.generation < folder.generation() and folder.result() is None


def next_generation(folder: JobFolder) -> int:
    """The generation that a reopening begins, if it begins one."""
    return folder.generation() + (1 if folder.result() is not None else 0)
