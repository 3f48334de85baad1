"""What RQ runs for an entry on its queue `jobs`: lead one job, in a process of its own."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from parallelrun_core.folder.unreadable import UNREADABLE, SkippedJobs
from parallelrun_core.store.connection import connect
from parallelrun_master.leader import Leader
from parallelrun_master.settings import MasterSettings

if TYPE_CHECKING:
    from types import FrameType

SETTINGS = "_PARALLELRUN_MASTER_SETTINGS"
"""Environment variable that passes the supervisor's settings to the processes that RQ forks."""


def lead(job_id: str) -> None:
    """Lead a job to its end, unless another process leads it already."""
    settings = MasterSettings.model_validate_json(os.environ[SETTINGS])
    try:
        leader = Leader(connect(settings.redis_url), job_id, settings, leave=lambda: os._exit(1))
    except UNREADABLE as error:
        SkippedJobs(settings.root).report(job_id, error)  # another master may be able to lead it
        return

    def on_terminate(number: int, frame: FrameType | None) -> None:
        leader.resign()

    signal.signal(signal.SIGTERM, on_terminate)
    leader.run()
