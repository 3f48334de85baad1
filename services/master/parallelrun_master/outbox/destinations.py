"""The destinations of the outbox."""

from __future__ import annotations

from pathlib import Path

from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.job_span import span_of
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.layout import notices_of, traces_of
from parallelrun_core.tracing.switch import Tracing


def destinations_of(folder: JobFolder, record: JobRecord, generation: int, tracing: Tracing | None) -> list[Path]:
    """The folders of notes in which the end of this generation of a job belongs."""
    destinations = {
        notices_of(folder.root): bool(record.spec.get("notify")),
        traces_of(folder.root): _is_traced(folder, record, generation, tracing),
    }
    return [notes for notes, is_wanted in destinations.items() if is_wanted]


def _is_traced(folder: JobFolder, record: JobRecord, generation: int, tracing: Tracing | None) -> bool:
    if tracing is None or tracing.problem:
        return False
    try:
        return span_of(folder, record, generation, tracing.sampler).own.is_sampled
    except (NotFound, CorruptLog):
        return False
    except (NewerSchema, OSError):  # of the pipeline's record: whoever sends it will know
        return True
