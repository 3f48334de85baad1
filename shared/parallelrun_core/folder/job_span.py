"""The span of a job: its ids follow from what was submitted, so nobody has to agree upon them with anybody."""

from __future__ import annotations

from typing import NamedTuple

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.tracing.context import SpanContext, span_id_of, trace_id_of
from parallelrun_core.tracing.sampling import Sampler
from parallelrun_core.tracing.switch import Tracing

VARIABLE = "TRACEPARENT"


class JobSpan(NamedTuple):
    span: SpanContext
    parent: SpanContext | None
    """The span of the pipeline of which it is a step, or the one that its submission named."""


def span_of(folder: JobFolder, record: JobRecord, generation: int, sampler: Sampler) -> JobSpan:
    """The span of a job.

    Raises:
        NotFound, NewerSchema, CorruptLog: the record of the pipeline to which it belongs can't be read.
    """
    submitted = SpanContext.parse(_submitted_with(folder, record))
    trace_id = submitted.trace_id if submitted is not None else trace_id_of(record.outermost)
    is_kept = sampler.keeps(trace_id, submitted)
    parent = submitted
    if record.parent is not None:
        pipeline = JobFolder(folder.root, record.parent.job_id)
        parent = SpanContext(trace_id, _span_id(pipeline.job_id, pipeline.generation()), is_kept)
    return JobSpan(SpanContext(trace_id, _span_id(record.job_id, generation), is_kept), parent)


def variables_of(folder: JobFolder, record: JobRecord, generation: int, tracing: Tracing | None) -> dict[str, str]:
    """Return what a script finds in its environment, so that its own spans belong to the trace; nothing, if there is
    none.

    Without traces of ours, it is what the submission named: our span would be missing in between.

    Raises:
        NotFound, NewerSchema, CorruptLog: as `span_of`.
    """
    if tracing is not None:
        return {VARIABLE: span_of(folder, record, generation, tracing.sampler).span.traceparent}
    submitted = SpanContext.parse(_submitted_with(folder, record))
    return {VARIABLE: submitted.traceparent} if submitted is not None else {}


def _submitted_with(folder: JobFolder, record: JobRecord) -> str:
    """The `traceparent` of the submission: that of a step came with the outermost pipeline."""
    submitted = record if record.parent is None else JobFolder(folder.root, record.outermost).record()
    return submitted.traceparent


def _span_id(job_id: str, generation: int) -> str:
    return span_id_of(job_id, str(generation))
