"""Numbers as a report has them. Pure functions."""

from __future__ import annotations


def seconds(value: float | None) -> str:
    """`3 ms`, `2.41 s`, `4 min 10 s`, `2 h 5 min`; empty if it isn't known."""
    if value is None:
        return ""
    if value < 0.0995:
        return f"{value * 1000:.2g} ms" if value >= 0.0005 else "0 s" if value <= 0 else "< 1 ms"
    if value < 99.95:
        return f"{value:.3g} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min"


def share(value: float | None) -> str:
    """A part of a whole in percent; empty if it isn't known."""
    if value is None:
        return ""
    if 0 < value < 0.0005:
        return "< 0.1 %"
    return f"{100 * value:.0f} %" if value >= 0.1 or not value else f"{100 * value:.1f} %"


def per_second(value: float | None) -> str:
    """Three digits at most; empty if it isn't known."""
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
