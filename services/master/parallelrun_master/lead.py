"""What a master runs for a job that needs a leader: lead it, in a process of its own."""

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


def lead(settings: MasterSettings, job_id: str) -> None:
    """Lead a job to its end, unless another process leads it already; for the main thread of a process."""
    try:
        leader = Leader(connect(settings.redis_login), job_id, settings, leave=lambda: os._exit(1))
    except UNREADABLE as error:
        SkippedJobs(settings.root).report(job_id, error)  # another master may be able to lead it
        return

    def on_terminate(number: int, frame: FrameType | None) -> None:
        leader.resign()

    signal.signal(signal.SIGTERM, on_terminate)
    leader.run()
