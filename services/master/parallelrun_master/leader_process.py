"""The process of a leader, which a master runs for a job that needs one, and what is made before it is forked."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Final

import msgspec

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import Closing
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.folder.term_log import Header
from parallelrun_core.folder.unreadable import UNREADABLE, SkippedJobs
from parallelrun_core.mltable.formats import read_steps
from parallelrun_core.pipelines.records import StepRecord
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.shell_words import with_values
from parallelrun_core.storage.path_rule import Places
from parallelrun_core.store.connection import connect
from parallelrun_core.store.nodes import NodeInfo
from parallelrun_core.store.script_texts import read_all
from parallelrun_core.wire.progress import Progress
from parallelrun_master.leader.leader import Leader
from parallelrun_master.pipelines.turn import PipelineTurn
from parallelrun_master.settings import MasterSettings


def lead(settings: MasterSettings, job_id: str) -> None:
    """Lead a job to its end, or a pipeline as far as it can go now, unless another process leads it already.

    For the main thread of a process. SIGTERM is ignored afterwards, if it has come.
    """
    try:
        leader = _leader(settings, job_id)
    except UNREADABLE as error:
        SkippedJobs(settings.root).report(job_id, error)  # another master may be able to lead it
        return

    def on_terminate(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
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


_RECORDS: Final = (Closing, Header, JobRecord, JobResult, NodeInfo, Places, Progress, StepRecord)


def warm_up() -> None:
    """Make it, in the process from which leaders are forked."""
    for record in _RECORDS:
        msgspec.json.Decoder(record)
    JobSpec.model_rebuild()
    read_steps()
    read_all()
    with_values("true", lambda kind, name: "")
