"""What an entry on RQ's queue `concatenate` runs: put one job's output together, and tell its leader."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from parallelrun_concatenator.formats import assembler_of
from parallelrun_concatenator.merge import merge
from parallelrun_concatenator.segments import SegmentTable
from parallelrun_concatenator.settings import ConcatenatorSettings
from parallelrun_core.disktrouble import is_disk_trouble
from parallelrun_core.errors import NotFound, ParallelRunError
from parallelrun_core.jobfolder import JobFolder
from parallelrun_core.process import die_with_parent_if_told
from parallelrun_core.states import JobState
from parallelrun_core.store.connection import CONNECTION_ERRORS, connect
from parallelrun_core.store.leader_queue import Concatenated, LeaderQueue, report_concatenated
from parallelrun_core.store.registry import Registry
from parallelrun_core.telemetry import logger

if TYPE_CHECKING:
    from redis import Redis

SETTINGS = "_PARALLELRUN_CONCATENATOR_SETTINGS"
"""Variable in which the supervisor leaves its settings for the processes that RQ forks."""
_SHOW_EVERY_S = 0.5
_TELL_WITHIN_S = 60.0


def concatenate(job_id: str) -> None:
    """Put the output of a job together, if it is finalizing. Safe to run twice, also at the same time."""
    die_with_parent_if_told()
    settings = ConcatenatorSettings.model_validate_json(os.environ[SETTINGS])
    redis = connect(settings.redis_url)
    registry = Registry(redis)
    queue = LeaderQueue(redis, job_id)
    log = logger(job_id=job_id)
    if registry.state(job_id) is not JobState.FINALIZING:
        log.info("nothing_to_concatenate")
        return
    folder = JobFolder(settings.root, job_id)
    progress = registry.status(job_id).progress
    shown_at = 0.0

    def show(length: int) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if now >= shown_at + _SHOW_EVERY_S:
            shown_at = now
            progress.bytes_concatenated = length
            text = msgspec.json.encode(progress)
            with suppress(*CONNECTION_ERRORS):  # this is for those who watch; the work goes on without them
                queue.show({"progress": text}, event=("progress", text))

    began = time.monotonic()
    try:
        spec = folder.record().job_spec()
        target = folder.output_file(spec)
        table = SegmentTable(folder.path)
        progress.bytes_to_concatenate = table.bytes
        assembler, notes = assembler_of(spec, target, table, folder.parts)
        merged = merge(table.in_order(), folder.parts, target, show, assembler)
        made = Concatenated(str(target), merged.length, merged.sha256, notes=notes)
        log.info("concatenated", segments=len(table), bytes=merged.length, seconds=round(time.monotonic() - began, 3))
    except (OSError, ParallelRunError, NotFound) as error:
        if isinstance(error, OSError) and is_disk_trouble(error):
            log.warning("disk_full", error=str(error))
            raise  # RQ sees this one fail, and the leader asks again after a while
        log.error("concatenation_failed", error=str(error))
        made = Concatenated("", 0, "", problem=f"The output can't be put together: {error}")
    _tell(redis, job_id, made)


def _tell(redis: Redis, job_id: str, made: Concatenated) -> None:
    """Tell the leader, also when Redis is away just now: a large output should not be made twice for that."""
    until = time.monotonic() + _TELL_WITHIN_S
    while True:
        try:
            report_concatenated(redis, job_id, made)
            return
        except CONNECTION_ERRORS:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)  # there is no event for a server that comes back
