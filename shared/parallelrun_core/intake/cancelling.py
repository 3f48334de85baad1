"""Cancels jobs: the request is recorded in the job's folder, durably, and then carried out on Redis.

Redis may forget it right after the answer, before a leader has recorded the end. The next leader finds it in the
folder.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from parallelrun_core.errors import Conflict, NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.intake.launching import register
from parallelrun_core.pipelines.standing import standings
from parallelrun_core.service import failpoints
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.turns import wake
from parallelrun_core.wire.states import JobState, StepState

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis


def cancel(redis: Redis, folder: JobFolder) -> None:
    """Cancel a job that has not ended, and the jobs of its steps. It stays canceled, whatever Redis forgets.

    Again, it changes nothing. Raises one of `CONNECTION_ERRORS` when Redis is away; what is recorded by then is carried
    out when it is back.

    Raises:
        NotFound: there is no such job.
        Conflict: it has ended otherwise, or its output is being put together.
    """
    record = folder.record()
    if (result := folder.result()) is not None:
        if result.state is not JobState.CANCELED:
            raise Conflict(f"Job {folder.job_id} is {result.state}: it can't become {JobState.CANCELED}.")
        return
    generation = folder.generation()
    folder.record_cancel(generation)
    failpoints.reach("cancel.recorded")
    try:
        _move(redis, folder)
    except Conflict:
        if Registry(redis).state(folder.job_id) is not JobState.CANCELED:
            folder.withdraw_cancel(generation)
            raise
    if record.is_pipeline:
        _cancel_steps(redis, folder, record)
        wake(redis, folder.job_id)


def _move(redis: Redis, folder: JobFolder) -> None:
    registry = Registry(redis)
    try:
        registry.move(folder.job_id, JobState.CANCELED)
    except NotFound:  # Redis has forgotten the job: a leader is asked to record its end
        register(redis, folder)
        registry.move(folder.job_id, JobState.CANCELED)


def _cancel_steps(redis: Redis, folder: JobFolder, record: JobRecord) -> None:
    """Cancel the steps at once, and not only by the pipeline's next turn: they may have the places of all leaders."""
    for standing in standings(folder, record.pipeline_spec()).values():
        if standing.state is StepState.RUNNING:
            with suppress(Conflict, NotFound):  # it has just ended, or not begun: the next turn finds that
                cancel(redis, JobFolder(folder.root, standing.job_id))
