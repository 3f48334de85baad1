"""Numbers of things, times and shares, as people read them."""

from __future__ import annotations

from typing import Final

_HISSES: Final = ("ch", "s", "x")


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number of things with their name: `1 node`, `2,000 nodes`.

    Args:
        many: the name of more of them; by default with `s`, or `es` after a hiss: `2 batches`.
    """
    return f"{count:,} {one if count == 1 else many or one + ('es' if one.endswith(_HISSES) else 's')}"


def duration(seconds: float) -> str:
    """Return a measured time with its unit: `12.3 ms`, `4.0 s`, `2.5 min`, `3.0 h`; nothing is `0 s`."""
    if seconds >= 7200:
        return f"{seconds / 3600:.1f} h"
    if seconds >= 120:
        return f"{seconds / 60:.1f} min"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.3g} ms" if seconds > 0 else "0 s"


def about(seconds: float) -> str:
    """Return a time in words that are never more exact than an estimate can be: `7 s`, `4 min`, `2 h 5 min`."""
    whole = max(0, round(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if hours < 48 else f"{hours / 24:,.0f} days"


def clock(seconds: float) -> str:
    """Return a time as a clock that runs shows it: `0:07`, `1:02:07`."""
    minutes, whole = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{whole:02}" if hours else f"{minutes}:{whole:02}"


def percent(share: float) -> str:
    """Return a share of 1 as a percentage."""
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.2g} %"


def part_of_a_cpu(share: float) -> str:
    """A worker's part of a CPU, in words where the figure says nothing: below one percent."""
    return "almost none of a CPU" if share < 0.01 else f"{percent(share)} of a CPU"
