"""Wall clock times as moments, where clocks are put forward and back.

A moment is a datetime in UTC, a wall time one without a zone. What a wall shows twice, when clocks are put back, are
two moments. What it never shows, when they are put forward, stands for the moment at which that happens.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

_SECOND: Final = timedelta(seconds=1)


def wall_time(moment: datetime, zone: tzinfo) -> datetime:
    """Return what a clock of the zone shows at a moment."""
    return moment.astimezone(zone).replace(tzinfo=None)


def moment_of(wall: datetime, zone: tzinfo) -> datetime:
    """The first moment at which a clock of the zone shows this time, or at which it jumps over it."""
    earlier, later = _by_offset(wall, zone)
    if wall_time(earlier, zone) == wall:
        return earlier
    return _jump(later, earlier, zone)


def moments_of(wall: datetime, zone: tzinfo) -> list[datetime]:
    """All moments at which a clock of the zone shows this time: one, two or none."""
    return [each for each in sorted(set(_by_offset(wall, zone))) if wall_time(each, zone) == wall]


def _by_offset(wall: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """The moments by the offset before a change of the clocks that may be there, and by the one after it."""
    before, after = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return before, after


def _jump(low: datetime, high: datetime, zone: tzinfo) -> datetime:
    """The moment, to the second, at which the zone's offset changes, after `low` and not after `high`."""
    offset = low.astimezone(zone).utcoffset()
    while high - low > _SECOND:
        middle = low + (high - low) // 2
        middle -= timedelta(microseconds=middle.microsecond)
        middle = max(middle, low + _SECOND) if middle <= low else middle
        if middle.astimezone(zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)
