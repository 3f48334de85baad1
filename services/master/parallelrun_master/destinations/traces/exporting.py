"""Sends spans by OpenTelemetry's own exporter, as the standard variables say: by OTLP over HTTP.

Only the process that sends them imports this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from itertools import islice
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from parallelrun_core.folder.job_span import JobSpan
from parallelrun_core.tracing.context import span_id_of
from parallelrun_core.wire.masking import Mask
from parallelrun_master.destinations.traces.spans import JOB, TraceSpan, Value

_AT_ONCE: Final = 512
"""Spans in one request."""
_LONGEST_TEXT: Final = 1000


class NotSent(Exception):
    """The collector has not taken a trace."""


class Exporter:
    """Sends traces to one collector."""

    def __init__(self) -> None:
        self._exporter = OTLPSpanExporter()
        self._ids = _GivenIds()
        # What is sent was decided before there was a process for it.
        provider = TracerProvider(
            sampler=ALWAYS_ON, resource=_resource(), id_generator=self._ids, shutdown_on_exit=False
        )
        self._tracer = provider.get_tracer("parallelrun", version("parallelrun"))

    def send(self, spans: Iterable[TraceSpan], of_job: JobSpan, mask: Mask) -> int:
        """Send the spans of one job; returns how many there were.

        Args:
            mask: hides secrets in all texts.

        Raises:
            NotSent: the collector is away, or refuses.
        """
        count, remaining = 0, iter(spans)
        while some := list(islice(remaining, _AT_ONCE)):
            count += len(some)
            if self._exporter.export([self._made(span, of_job, mask) for span in some]) is not SpanExportResult.SUCCESS:
                raise NotSent("the collector did not take it")
        return count

    def _made(self, span: TraceSpan, of_job: JobSpan, mask: Mask) -> ReadableSpan:
        own_context, parent = of_job
        above = parent.span_id if parent is not None else ""
        if span.key != JOB:
            above = _id(own_context.span_id, span.parent)
        self._ids.trace_id, self._ids.span_id = (
            int(own_context.trace_id, 16),
            int(_id(own_context.span_id, span.key), 16),
        )
        span_made = self._tracer.start_span(
            mask.printable(span.name),
            context=set_span_in_context(NonRecordingSpan(_context(own_context.trace_id, above))) if above else None,
            attributes=dict(_masked(span, mask)),
            start_time=_ns(span.begin),
        )
        if span.error:
            span_made.set_status(Status(StatusCode.ERROR, mask.printable(span.error)[:_LONGEST_TEXT]))
        span_made.end(max(_ns(span.begin), _ns(span.end)))
        if not isinstance(span_made, ReadableSpan):
            raise NotSent("OpenTelemetry makes no spans")
        return span_made


class _GivenIds(IdGenerator):
    """The ids of the span that is made next: they follow from the job, so that a trace that is sent twice is one."""

    trace_id = 0
    span_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return self.span_id


def _resource() -> Resource:
    """Return who says all this, unless the variables say so: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES."""
    attributes = {"service.name": "parallelrun", "service.version": version("parallelrun")}
    operator_attributes = OTELResourceDetector().detect().attributes
    return Resource.create({name: value for name, value in attributes.items() if name not in operator_attributes})


def _id(of_job: str, key: str) -> str:
    return of_job if key == JOB else span_id_of(of_job, key)


def _context(trace_id: str, span_id: str) -> SpanContext:
    sampled = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=sampled)


def _masked(span: TraceSpan, mask: Mask) -> Iterator[tuple[str, Value]]:
    for name, value in span.attributes.items():
        yield name, mask.printable(value)[:_LONGEST_TEXT] if isinstance(value, str) else value


def _ns(seconds: float) -> int:
    return round(seconds * 1e6) * 1000
