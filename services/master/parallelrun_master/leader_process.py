"""The process of a leader, which a master runs for a job that needs one."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.unreadable import UNREADABLE, SkippedJobs
from parallelrun_core.store.connection import connect
from parallelrun_master.leader.leader import Leader
from parallelrun_master.pipelines.turn import PipelineTurn
from parallelrun_master.settings import MasterSettings

if TYPE_CHECKING:
    from types import FrameType


def lead(settings: MasterSettings, job_id: str) -> None:
    """Lead a job to its end, or a pipeline as far as it can go now, unless another process leads it already.

    For the main thread of a process.
    """
    try:
        leader = _leader(settings, job_id)
    except UNREADABLE as error:
        SkippedJobs(settings.root).report(job_id, error)  # another master may be able to lead it
        return

    def on_terminate(number: int, frame: FrameType | None) -> None:
        leader.resign()

    signal.signal(signal.SIGTERM, on_terminate)
    leader.run()


def _leader(settings: MasterSettings, job_id: str) -> Leader | PipelineTurn:
    redis, folder = connect(settings.redis_login), JobFolder(settings.root, job_id)
    record = folder.record()
    if record.is_pipeline:
        return PipelineTurn(redis, folder, record, settings, leave=_leave)
    return Leader(redis, job_id, settings, leave=_leave, record=record)


def _leave() -> None:
    os._exit(1)
