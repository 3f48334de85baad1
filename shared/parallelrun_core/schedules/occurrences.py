"""The moments at which something is due, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from itertools import chain, islice
from typing import Final, Protocol

from parallelrun_core.schedules.wall_clock import moment_of, moments_of, wall_time

_DAY: Final = timedelta(days=1)
_HORIZON: Final = 366 * 41
"""In days. What isn't due within it never is: the 29th of February on a given day of the week is within 40 years."""
_LOOK_BACK: Final = (timedelta(hours=2), timedelta(days=2), timedelta(days=70), timedelta(days=800))
"""How far to look back for the latest one, farther each time."""
COUNTED: Final = 1000
"""No more than so many are counted."""


class Days(Protocol):
    """Days and times of day, as a clock on a wall shows them."""

    @property
    def is_hourly(self) -> bool:
        """Return whether what is meant is each hour that passes, and not those that a clock shows."""
        ...

    def has(self, day: date) -> bool: ...

    def times(self) -> list[time]: ...


class Occurrences(Protocol):
    """The moments, in UTC and in whole seconds, at which something is due."""

    @property
    def last(self) -> datetime | None:
        """Return the moment after which nothing is due; None: there is no end."""
        ...

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the occurrences after a moment, in order."""
        ...


@dataclass(frozen=True, slots=True)
class WallClockOccurrences:
    """On days and at times by the clocks of a time zone.

    A time that clocks jump over is due when they do; one that they show twice, the first time. What is due in every
    hour is due in each hour that passes.
    """

    days: Days
    zone: tzinfo
    first: datetime
    last: datetime | None

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the occurrences after a moment, in order; after a long time without any, none."""
        since = max(moment, self.first - timedelta(microseconds=1))
        day = wall_time(since, self.zone).date()
        # What a day before has may come later, where a clock has jumped over midnight.
        day, latest, days_left = day - _DAY if day > date.min else day, since, _HORIZON
        pending, following = list[datetime](), self._of(day)
        while days_left and day < date.max:
            pending = sorted({*pending, *following})
            following = self._of(day + _DAY)
            # Where clocks are put back over midnight, a day begins before the one before it has ended.
            ready = [due for due in pending if not following or due < following[0]]
            pending = pending[len(ready) :]
            for due in ready:
                if self.last is not None and due > self.last:
                    return
                if due > latest:
                    yield due
                    latest, days_left = due, _HORIZON
            day, days_left = day + _DAY, days_left - 1

    def _of(self, day: date) -> list[datetime]:
        if not self.days.has(day):
            return []
        walls = [datetime.combine(day, each) for each in self.days.times()]
        if self.days.is_hourly:
            return sorted(set(chain.from_iterable(moments_of(wall, self.zone) for wall in walls)))
        return [moment_of(wall, self.zone) for wall in walls]


@dataclass(frozen=True, slots=True)
class IntervalOccurrences:
    """Occurrences at equal distances, whatever clocks show."""

    first: datetime
    step: timedelta
    last: datetime | None

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the occurrences after a moment, in order."""
        passed = (moment - self.first) // self.step
        due = self.first + max(0, passed + 1) * self.step
        while self.last is None or due <= self.last:
            yield due
            if due.year >= 9999:
                return
            due += self.step


def next_of(due: Occurrences, moment: datetime) -> datetime | None:
    """The first one after a moment, if there is one."""
    return next(due.after(moment), None)


def latest_of(due: Occurrences, since: datetime, until: datetime) -> datetime | None:
    """The last one after `since` and not after `until`, if there is one."""
    until = until if due.last is None else min(until, due.last)  # else one that ended long ago is read from `since` on
    for back in _LOOK_BACK:
        begin = max(since, until - back)
        within = list(_until(due.after(begin), until))
        if within or begin == since:
            return within[-1] if within else None
    return next(iter(deque(_until(due.after(since), until), maxlen=1)), None)


def count_between(due: Occurrences, since: datetime, before: datetime) -> int:
    """Return how many there are after `since` and before `before`; no more than `COUNTED` are counted."""
    return sum(each < before for each in islice(_until(due.after(since), before), COUNTED))


def _until(moments: Iterator[datetime], until: datetime) -> Iterator[datetime]:
    for each in moments:
        if each > until:
            return
        yield each
