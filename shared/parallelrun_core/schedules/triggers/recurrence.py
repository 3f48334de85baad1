"""Due every so often: every few minutes, or by day, week or month at times of the day, from a first day on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field

from parallelrun_core.described import Strict
from parallelrun_core.problems import Problems
from parallelrun_core.schedules.occurrences import IntervalOccurrences, Occurrences, WallClockOccurrences
from parallelrun_core.schedules.trigger_base import Trigger, lower
from parallelrun_core.schedules.wall_clock import wall_time

_LONGEST: Final = 10_000
"""The largest number of an interval."""
_UNITS: Final = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
WEEK_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _as_list(value: object) -> object:
    return [] if value is None else value if isinstance(value, list | tuple) else [value]


Numbers = Annotated[tuple[int, ...], BeforeValidator(_as_list), Field(max_length=60)]
WeekDay = Annotated[
    Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"], BeforeValidator(lower)
]


class RecurrencePattern(Strict):
    """The times of a recurrence by day, week or month."""

    hours: Numbers = ()
    """0 to 23; by default that of the start."""
    minutes: Numbers = ()
    """0 to 59; by default that of the start."""
    week_days: Annotated[tuple[WeekDay, ...], BeforeValidator(_as_list), Field(max_length=7)] = ()
    """`monday` to `sunday`."""
    month_days: Numbers = ()
    """1 to 31. A month without such a day is passed over."""


class RecurrenceTrigger(Trigger):
    """Due every so often."""

    mappings: ClassVar[tuple[str, ...]] = ("schedule",)

    type: Annotated[Literal["recurrence"], BeforeValidator(lower)]
    frequency: Annotated[Literal["minute", "hour", "day", "week", "month"], BeforeValidator(lower)]
    interval: int = Field(default=1, ge=1, le=_LONGEST)
    """Number of minutes, hours, days, weeks or months."""
    pattern: RecurrencePattern | None = Field(default=None, alias="schedule")
    """Time when on such a day."""

    def due(self, zone: tzinfo, first: datetime, last: datetime | None, pointer: str) -> Occurrences:
        pattern = self.pattern or RecurrencePattern()
        # Not in the model: `read_trigger` asks when it is due, so a document is refused with the place of each number.
        _check_pattern(self.frequency, pattern, f"{pointer}/schedule")
        if self.frequency in _UNITS:
            return IntervalOccurrences(first, _UNITS[self.frequency] * self.interval, last)
        return WallClockOccurrences(_recurrence(self, pattern, wall_time(first, zone)), zone, first, last)

    def describe(self) -> str:
        times = self.pattern.model_dump(mode="json", exclude_defaults=True) if self.pattern else {}
        often = f"every {self.frequency}" if self.interval == 1 else f"every {self.interval} {self.frequency}s"
        listed = (f"{name.replace('_', ' ')}: {', '.join(map(str, values))}" for name, values in times.items())
        return "; ".join([often, *listed])


def _recurrence(trigger: RecurrenceTrigger, pattern: RecurrencePattern, start: datetime) -> Recurrence:
    week_days = frozenset(WEEK_DAYS.index(each) for each in pattern.week_days)
    month_days = frozenset(pattern.month_days)
    if trigger.frequency == "week" and not week_days:
        week_days = frozenset({start.weekday()})
    if trigger.frequency == "month" and not week_days and not month_days:
        month_days = frozenset({start.day})
    return Recurrence(
        frequency=trigger.frequency,  # type: ignore[arg-type]  # minutes and hours are by the time, not by the clock
        interval=trigger.interval,
        first=start.date(),
        hours=tuple(sorted(set(pattern.hours))) or (start.hour,),
        minutes=tuple(sorted(set(pattern.minutes))) or (start.minute,),
        second=0 if pattern.hours or pattern.minutes else start.second,
        week_days=week_days,
        month_days=month_days,
    )


def _check_pattern(frequency: str, pattern: RecurrencePattern, pointer: str) -> None:
    """Refuse numbers that no clock shows, and parts that the frequency makes meaningless."""
    problems = Problems()
    for name, values, low, high in (
        ("hours", pattern.hours, 0, 23),
        ("minutes", pattern.minutes, 0, 59),
        ("month_days", pattern.month_days, 1, 31),
    ):
        wrong = [value for value in values if not low <= value <= high]
        if wrong:
            problems.wrong(f"{pointer}/{name}", f"must be {low} to {high}, not {wrong[0]}")
    allowed = {"day": {"hours", "minutes"}, "week": {"hours", "minutes", "week_days"}}
    allowed["month"] = allowed["week"] | {"month_days"}
    for name, values in pattern:
        if values and name not in allowed.get(frequency, set()):
            hint = "a frequency of day, week or month" if frequency in _UNITS else "see docs/schedules.md"
            problems.wrong(f"{pointer}/{name}", f"it has no meaning with the frequency {frequency}", hint)
    if pattern.week_days and pattern.month_days:
        problems.wrong(f"{pointer}/month_days", "days of the week are given, too", "leave one of them out")
    problems.check()


TRIGGER: Final = RecurrenceTrigger


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
