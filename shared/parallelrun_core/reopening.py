"""Lets a job that has ended go on, in a new generation: recorded first in the folder, durably, then on Redis.

If whoever does it dies in between, it is done again with the same numbers, and finished.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from parallelrun_core.errors import Conflict
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import Reopening
from parallelrun_core.output_claims import claim_of
from parallelrun_core.store.registry import Registry

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis


def reopen(registry: Registry, folder: JobFolder, reopening: Reopening) -> None:
    """Begin a generation of a job that has ended and is retired. No leader is asked for.

    Raises one of `CONNECTION_ERRORS` when Redis is away; a master finds what is recorded by then.

    Raises:
        Conflict: another request has just begun it, or the job has not ended.
    """
    record = folder.record()
    if folder.result() is None:
        folder.withdraw_cancel(folder.generation())  # Redis forgot it, and no leader has recorded it yet
    else:
        folder.reopen(reopening)
    registry.reopen(folder.job_id, submitted=record.submitted, output=claim_of(folder, record))


def let_go_on(redis: Redis, folder: JobFolder) -> None:
    """Queue a job that has no end in its present generation, if Redis doesn't know that it has begun.

    Raises one of `CONNECTION_ERRORS` when Redis is away.
    """
    from parallelrun_core.store.rq.wake import ask_for_leader

    registry, record = Registry(redis), folder.record()
    state = registry.state(folder.job_id)
    is_known = state is not None and (not state.is_terminal or registry.is_active(folder.job_id))
    if folder.result() is None and not is_known:
        with suppress(Conflict):  # somebody else was faster
            registry.reopen(folder.job_id, submitted=record.submitted, output=claim_of(folder, record))
        ask_for_leader(redis, folder.job_id, attempt=f"again-{folder.generation()}")


def next_generation(folder: JobFolder) -> int:
    """The generation that a reopening begins, if it begins one."""
    return folder.generation() + (1 if folder.result() is not None else 0)
