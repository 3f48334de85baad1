"""Reads what is known of a job that has ended, and makes the spans of its trace."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from parallelrun_core.adviser.reading.evidence import begun_at, evidence_of
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_master.traces.spans import TraceSpan, job_span, spans_within


def story_of(
    folder: JobFolder, record: JobRecord, result: JobResult, generation: int, most: int
) -> Iterator[TraceSpan]:
    """The spans of one generation of a job, its own one first.

    Of a pipeline, and of a generation after which the job was reopened before its trace was sent, there is only that
    one: what the folder says of tries is about the last generation.

    Raises:
        NotFound, NewerSchema, CorruptLog: its records can't be read.
    """
    submitted = max([record.submitted, *(each.at for each in folder.reopenings() if each.generation == generation)])
    root_span = job_span(record, result, generation, submitted)
    if record.is_pipeline or folder.generation() != generation:
        return iter([root_span])
    evidence, begun = evidence_of(folder, result), begun_at(folder, record, result)
    return chain([root_span], spans_within(evidence, result, submitted=submitted, begun=begun, most=most))
