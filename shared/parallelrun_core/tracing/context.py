"""Span contexts: the ids of a span, as https://www.w3.org/TR/trace-context/ writes them. Pure."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final, NamedTuple, Self

_TRACEPARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_SAMPLED: Final = 1


class SpanContext(NamedTuple):
    """The ids of one span, and whether somebody keeps it."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    is_sampled: bool

    @classmethod
    def parse(cls, traceparent: str) -> Self | None:
        """Parse a header, or the variable `TRACEPARENT`; None: it is none, and its sender has no trace."""
        match = _TRACEPARENT.fullmatch(traceparent.strip())
        if match is None:
            return None
        version, trace_id, span_id, flags, rest = match.groups()
        if version == "ff" or (version == "00" and rest) or not int(trace_id, 16) or not int(span_id, 16):
            return None
        return cls(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))

    @property
    def traceparent(self) -> str:
        """The context in the form of headers."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.is_sampled):02x}"


def trace_id_of(*names: str) -> str:
    """The id of a trace that follows from these names: the same whoever asks, spread evenly."""
    return _digest(names)[:32]


def span_id_of(*names: str) -> str:
    return _digest(names)[-16:]


def _digest(names: tuple[str, ...]) -> str:
    return sha256("\0".join(names).encode()).hexdigest()
