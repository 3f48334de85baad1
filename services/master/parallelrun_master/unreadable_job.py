"""The end of a job whose folder is so damaged that nobody can lead it: what Redis knows of it is recorded."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from parallelrun_core.errors import Conflict, CorruptLog, NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult
from parallelrun_core.folder.unreadable import UNREADABLE
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.turns import wake
from parallelrun_core.wire.states import JobState
from parallelrun_master.destinations import destinations_of
from parallelrun_master.outbox.entries import enqueue
from parallelrun_master.policy.setbacks import damage

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis


def fail_unreadable_job(redis: Redis, folder: JobFolder, why: str, *, term: int) -> JobResult | None:
    """Fail a job for what is damaged, unless it has ended; returns the result, if this has recorded it.

    What is damaged can be put back, and the job then be resumed: all that was decided stays.

    Args:
        why: what is damaged, with its path.
        term: of the leader that calls, or the present one.

    Raises:
        Fenced: another term has begun.
        OSError: the folder can't be written.
    """
    registry, job_id = Registry(redis), folder.job_id
    with suppress(Conflict):
        try:
            registry.move(job_id, JobState.FAILED, damage(why), term=term)
        except NotFound:
            return None
    status = registry.status(job_id)
    progress = msgspec.structs.replace(status.progress, running=0, preparing=0, workers=0, nodes_wanted=0, nodes_why="")
    result = JobResult(
        job_id=job_id, state=status.state, started=status.started, ended=registry.now(), progress=progress,
        failure=status.failure,
    )  # fmt: skip
    queue, is_recorded = LeaderQueue(redis, job_id), False
    generation = max(folder.generation(), queue.published_generation())
    with suppress(*UNREADABLE):
        for notes in destinations_of(folder, folder.record(), generation, tracing=None):
            enqueue(notes, job_id, generation)
    with suppress(CorruptLog):  # there is a result, which can't be read
        is_recorded = folder.conclude(result, generation=generation) is result
    queue.show({"ended": repr(result.ended)}, event=("end", msgspec.json.encode(result.state)))
    _wake_parent(redis, folder)
    registry.retire(job_id, term=term)
    return result if is_recorded else None


def _wake_parent(redis: Redis, folder: JobFolder) -> None:
    """Let the pipeline of which the job is a step see its end, if that can be read; if not, it looks by itself."""
    with suppress(*UNREADABLE):
        if (parent := folder.record().parent) is not None:
            wake(redis, parent.job_id)
