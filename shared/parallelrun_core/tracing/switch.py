"""The switch of tracing: the standard variables of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from parallelrun_core.tracing.sampling import Sampler

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL: Final = "http/protobuf"
_LIBRARY: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


@dataclass(frozen=True, kw_only=True)
class Tracing:
    """Traces are wanted."""

    sampler: Sampler
    problem: str = ""
    """Why this process can send none, and what to do; empty: it can."""
    ignored: str = ""
    """The part of the variables that isn't understood."""


def tracing_of(environment: Mapping[str, str]) -> Tracing | None:
    """Return what a process with these variables is to do; None: there are no traces.

    That is so unless an endpoint is named: OpenTelemetry's own default, a collector on this machine, would send
    the names of jobs to whoever listens there.
    """
    if not any(environment.get(name) for name in ENDPOINTS):
        return None
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return None
    sampler, ignored = Sampler.parse(
        environment.get("OTEL_TRACES_SAMPLER", ""), environment.get("OTEL_TRACES_SAMPLER_ARG", "")
    )
    return Tracing(sampler=sampler, problem=_problem(environment), ignored=ignored)


def _problem(environment: Mapping[str, str]) -> str:
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() or "otlp"
    if "otlp" not in exporter.split(","):
        return f"OTEL_TRACES_EXPORTER={exporter} is not supported: leave it out, or set it to otlp"
    protocol = next((environment[name] for name in _PROTOCOLS if environment.get(name)), _PROTOCOL)
    if protocol.strip().lower() != _PROTOCOL:
        how = f"set OTEL_EXPORTER_OTLP_PROTOCOL={_PROTOCOL}, and an endpoint that speaks it (port 4318 of a collector)"
        return f"traces are sent by OTLP over HTTP, not by {protocol}: {how}"
    if not all(map(_is_there, _LIBRARY)):
        return "the libraries for traces are not installed: pip install 'parallelrun[otel]'"
    return ""


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
