"""Sampling of traces: the samplers that OpenTelemetry's variables can name, and its own default. Pure.

An agent decides here what a script is told, and a master what it sends, without a library, and alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from parallelrun_core.tracing.context import SpanContext

_DEFAULT: Final = "parentbased_always_on"
_PARENT_BASED: Final = "parentbased_"
_RATIO: Final = "traceidratio"
SAMPLERS: Final = tuple(
    f"{prefix}{name}" for prefix in ("", _PARENT_BASED) for name in ("always_on", "always_off", _RATIO)
)
_IDS: Final = 1 << 64


@dataclass(frozen=True)
class Sampler:
    """Decides by the id of a trace, and by what the sender of its parent has decided."""

    follows_parent: bool = True
    share: float = 1.0
    """Share of all traces that are sent; 0 to 1."""

    @classmethod
    def parse(cls, name: str, argument: str) -> tuple[Sampler, str]:
        """Return what `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG` say, and what of it is no sampler; as
        OpenTelemetry wants it, that is reported, and the default holds."""
        name, wrong = name.strip().lower() or _DEFAULT, ""
        if name not in SAMPLERS:
            wrong = f"OTEL_TRACES_SAMPLER={name} is not one of {', '.join(SAMPLERS)}; {_DEFAULT} is used"
            name = _DEFAULT
        kind, share = name.removeprefix(_PARENT_BASED), 1.0
        if kind == "always_off":
            share = 0.0
        elif kind == _RATIO and not _is_share(argument):
            wrong = f"OTEL_TRACES_SAMPLER_ARG={argument} is not a number from 0 to 1; 1 is used"
        elif kind == _RATIO:
            share = float(argument)
        return cls(name.startswith(_PARENT_BASED), share), wrong

    def keeps(self, trace_id: str, parent: SpanContext | None) -> bool:
        """Return whether the trace is sent.

        Args:
            parent: the span of somebody else to which it belongs.
        """
        if self.follows_parent and parent is not None:
            return parent.is_sampled
        return int(trace_id[16:], 16) < round(self.share * _IDS)


def _is_share(text: str) -> bool:
    try:
        return 0.0 <= float(text) <= 1.0
    except ValueError:
        return False
