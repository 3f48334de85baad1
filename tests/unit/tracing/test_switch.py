"""What OpenTelemetry's variables ask for, and whether its own library would decide likewise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import sampling as theirs
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from parallelrun_core.tracing import context, switch
from parallelrun_core.tracing.sampling import SAMPLERS, Sampler
from parallelrun_core.tracing.switch import tracing_of

ON = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
TRACE_IDS = st.integers(1, 2**128 - 1)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SERVICE_NAME": "jobs", "OTEL_TRACES_EXPORTER": "otlp"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {**ON, "OTEL_SDK_DISABLED": "True"},
        {**ON, "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_without_a_collector_there_are_no_traces(environment: dict[str, str]) -> None:
    assert tracing_of(environment) is None


@pytest.mark.parametrize("name", switch.ENDPOINTS)
def test_a_collector_is_enough(name: str) -> None:
    tracing = tracing_of({name: "http://collector:4318"})
    assert tracing is not None
    assert (tracing.problem, tracing.ignored, tracing.sampler) == ("", "", Sampler())


@pytest.mark.parametrize(
    "environment, why",
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"),
        ({"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, "not by http/json"),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "set it to otlp"),
    ],
)
def test_what_can_not_be_sent_says_what_to_set(environment: dict[str, str], why: str) -> None:
    tracing = tracing_of({**ON, **environment})
    assert tracing is not None
    assert why in tracing.problem


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "_LIBRARY", ("opentelemetry.nothing.of.this",))
    tracing = tracing_of(ON)
    assert tracing is not None
    assert "pip install 'parallelrun[otel]'" in tracing.problem


def test_a_sampler_that_there_is_none_of_is_named_and_the_default_holds() -> None:
    tracing = tracing_of({**ON, "OTEL_TRACES_SAMPLER": "sometimes"})
    assert tracing is not None
    assert "OTEL_TRACES_SAMPLER=sometimes" in tracing.ignored
    assert tracing.sampler == Sampler()
    assert "is not a number from 0 to 1" in Sampler.parse("traceidratio", "2")[1]


@given(name=st.sampled_from(SAMPLERS), share=st.floats(0, 1), trace_id=TRACE_IDS, parent=st.sampled_from([None, 0, 1]))
def test_we_decide_as_the_library_does(name: str, share: float, trace_id: int, parent: int | None) -> None:
    ours, wrong = Sampler.parse(name, str(share))
    kinds = {"always_on": theirs.ALWAYS_ON, "always_off": theirs.ALWAYS_OFF}
    root = kinds.get(name.removeprefix("parentbased_")) or theirs.TraceIdRatioBased(share)
    library = theirs.ParentBased(root) if name.startswith("parentbased_") else root
    span, around = None, None
    if parent is not None:
        around = set_span_in_context(
            NonRecordingSpan(SpanContext(trace_id, 1, is_remote=True, trace_flags=TraceFlags(parent)))
        )
        span = context.SpanContext(f"{trace_id:032x}", "0" * 15 + "1", bool(parent))

    assert not wrong
    is_kept = library.should_sample(around, trace_id, "job").decision is theirs.Decision.RECORD_AND_SAMPLE
    assert ours.keeps(f"{trace_id:032x}", span) == is_kept


@given(TRACE_IDS, st.integers(1, 2**64 - 1), st.booleans())
def test_a_span_is_named_as_the_library_reads_it(trace_id: int, span_id: int, is_sampled: bool) -> None:
    named = context.SpanContext(f"{trace_id:032x}", f"{span_id:016x}", is_sampled)
    read = TraceContextTextMapPropagator().extract({"traceparent": named.traceparent})
    from opentelemetry.trace import get_current_span

    there = get_current_span(read).get_span_context()
    assert (there.trace_id, there.span_id, there.trace_flags.sampled) == (trace_id, span_id, is_sampled)
    assert context.SpanContext.parse(named.traceparent) == named


@pytest.mark.parametrize(
    "text",
    [
        "",
        "job",
        f"00-{'0' * 32}-{'1' * 16}-01",
        f"00-{'1' * 32}-{'0' * 16}-01",
        f"00-{'1' * 32}-{'1' * 16}-01-more",
        f"ff-{'1' * 32}-{'1' * 16}-01",
        f"00-{'A' * 32}-{'1' * 16}-01",
        f"00-{'1' * 31}-{'1' * 16}-01",
    ],
)
def test_what_names_no_span_is_none(text: str) -> None:
    assert context.SpanContext.parse(text) is None


def test_what_a_later_version_adds_is_passed_over() -> None:
    named = context.SpanContext.parse(f"01-{'1' * 32}-{'2' * 16}-03-more")
    assert named == ("1" * 32, "2" * 16, True)
