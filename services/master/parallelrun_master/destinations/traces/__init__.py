"""Traces: what OpenTelemetry calls the story of one job, sent to a collector when the job has ended.

A trace is in the outbox (`parallelrun_master.outbox`) from the moment before the end is recorded. It is made from the
job's folder alone (`spans`), so nothing is measured for it and no job waits for it. A process sends those that are due
(`delivery`, `exporting`), by OpenTelemetry's own library, which only that process imports. Which tries are in it is
decided in `parallelrun_master.policy.traced_tries`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.folder.job_span import span_of

if TYPE_CHECKING:
    from parallelrun_core.folder.job_folder import JobFolder
    from parallelrun_core.folder.records import JobRecord
    from parallelrun_core.tracing.switch import Tracing
    from parallelrun_master.settings import MasterSettings

DELIVERY: Final = "parallelrun_master.destinations.traces.delivery"


def is_wanted(folder: JobFolder, record: JobRecord, generation: int, tracing: Tracing | None) -> bool:
    """Return whether a job is among those whose traces are kept."""
    if tracing is None or tracing.problem:
        return False
    try:
        return span_of(folder, record, generation, tracing.sampler).span.is_sampled
    except (NotFound, CorruptLog):
        return False
    except (NewerSchema, OSError):  # of the pipeline's record: whoever sends it will know
        return True


def is_served(settings: MasterSettings) -> bool:
    """Return whether there is a collector, and the library that sends to it."""
    tracing = settings.tracing()
    return tracing is not None and not tracing.problem
