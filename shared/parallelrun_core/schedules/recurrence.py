"""Recurrences: every so many days, weeks or months from a first day, at times of the day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, time, timedelta
from typing import Final, Literal

WEEK_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The days and the times of a day at which something is due."""

    frequency: Literal["day", "week", "month"]
    interval: int
    first: date
    """The day from which days and months are counted, and the week from which weeks are, which begin on Monday."""
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    week_days: frozenset[int]
    """0: Monday. Empty: any."""
    month_days: frozenset[int]
    """A month that has no such day is passed over. Empty: any."""
    second: int = 0

    is_hourly: Final = False

    def has(self, day: date) -> bool:
        if self._units(day) % self.interval:
            return False
        is_week_day = not self.week_days or day.weekday() in self.week_days
        return is_week_day and (not self.month_days or day.day in self.month_days)

    def times(self) -> list[time]:
        """Return when on such a day, in order."""
        return [time(hour, minute, self.second) for hour in self.hours for minute in self.minutes]

    def _units(self, day: date) -> int:
        """Return how many days, weeks or months after the first one it is."""
        if self.frequency == "day":
            return (day - self.first).days
        if self.frequency == "week":
            return (_monday(day) - _monday(self.first)).days // 7
        return (day.year - self.first.year) * 12 + day.month - self.first.month


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())
