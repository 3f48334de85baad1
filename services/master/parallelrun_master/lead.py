"""What an entry on RQ's queue `jobs` runs: lead one job, in a process of its own."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.process import die_with_parent_if_told
from parallelrun_core.store.connection import connect
from parallelrun_core.telemetry import logger
from parallelrun_master.leader import Leader
from parallelrun_master.settings import MasterSettings

if TYPE_CHECKING:
    from types import FrameType

SETTINGS = "_PARALLELRUN_MASTER_SETTINGS"
"""Variable in which the supervisor leaves its settings for the processes that RQ forks."""


def lead(job_id: str) -> None:
    """Lead a job to its end, unless another process leads it already."""
    die_with_parent_if_told()
    settings = MasterSettings.model_validate_json(os.environ[SETTINGS])
    try:
        leader = Leader(connect(settings.redis_url), job_id, settings)
    except NotFound:
        logger().error("job_folder_missing", job_id=job_id, root=str(settings.root))
        return
    except NewerSchema as error:
        logger().error("job_too_new", job_id=job_id, reason=str(error))  # a master of that release may lead it
        return
    except CorruptLog as error:
        logger().error("job_unreadable", job_id=job_id, reason=str(error))
        return

    def on_terminate(number: int, frame: FrameType | None) -> None:
        leader.resign()

    signal.signal(signal.SIGTERM, on_terminate)
    leader.run()
