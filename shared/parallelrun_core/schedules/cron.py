"""Cron expressions: `MINUTES HOURS DAYS MONTHS DAYS-OF-WEEK`.

    *        every value                 1,15      several
    9-17     a range                     */10      every tenth; so is 5-55/10
    mon-fri, jan    names of days and months; 0 and 7 are Sunday

As in any crontab, a day counts that is one of DAYS or one of DAYS-OF-WEEK if neither is `*`. The reference ignores DAYS
and MONTHS.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, time
from typing import Final

from parallelrun_core.errors import InvalidInput

_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONG_DAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FIELDS: Final = (("minutes", 0, 59), ("hours", 0, 23), ("days", 1, 31), ("months", 1, 12), ("days of the week", 0, 7))
_NAMES: Final = {
    "months": {name: number for number, name in enumerate(_MONTHS, 1)},
    "days of the week": {name: number for names in (_DAYS, _LONG_DAYS) for number, name in enumerate(names)},
}
_PART: Final = re.compile(r"(\*|[a-z0-9]+)(?:-([a-z0-9]+))?(?:/([0-9]+))?")


@dataclass(frozen=True, slots=True)
class Cron:
    """The days and the times of a day at which something is due."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int] | None
    """None: `*`."""
    months: frozenset[int]
    week_days: frozenset[int] | None
    """0: Sunday. None: `*`."""

    @property
    def is_hourly(self) -> bool:
        """Return whether it is due in every hour of a day."""
        return len(self.hours) == 24

    def has(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        is_day = self.days is None or day.day in self.days
        is_week_day = self.week_days is None or day.isoweekday() % 7 in self.week_days
        if self.days is not None and self.week_days is not None:
            return is_day or is_week_day
        return is_day and is_week_day

    def times(self) -> list[time]:
        """Return when on such a day, in order."""
        return [time(hour, minute) for hour in self.hours for minute in self.minutes]


def parse_cron(expression: str, pointer: str = "/expression") -> Cron:
    """Read an expression.

    Args:
        pointer: where it was given.

    Raises:
        InvalidInput: it isn't one; says which part.
    """
    parts = expression.lower().split()
    if len(parts) != len(_FIELDS):
        hint = "MINUTES HOURS DAYS MONTHS DAYS-OF-WEEK, as in '15 16 * * mon'"
        raise InvalidInput.at(pointer, f"a cron expression has five fields, and this one {len(parts)}", hint)
    try:
        read = [_values(part, *field) for part, field in zip(parts, _FIELDS, strict=True)]
    except ValueError as error:
        raise InvalidInput.at(pointer, str(error)) from None
    minutes, hours, days, months, week_days = read
    return Cron(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=None if parts[2] == "*" else frozenset(days),
        months=frozenset(months),
        week_days=None if parts[4] == "*" else frozenset(day % 7 for day in week_days),
    )


def _values(text: str, name: str, low: int, high: int) -> set[int]:
    """The values of one field. Raises ValueError, for people."""
    values: set[int] = set()
    for part in text.split(","):
        read = _PART.fullmatch(part)
        if read is None or (read[1] == "*" and read[2]):
            raise ValueError(f"{part[:40]!r} can't be read as {name}: '*', '5', '1,15', '9-17' or '*/10' can")
        step = int((read[3] or "1")[:9])
        if not step:
            raise ValueError(f"{part[:40]!r}, of the {name}, has a step of 0")
        if read[1] == "*":
            first, last = low, 6 if name == "days of the week" else high
        else:
            first = _number(read[1], name, low, high)
            last = _number(read[2], name, low, high) if read[2] else (high if read[3] else first)
        if last == 0 and first > 0 and name == "days of the week":
            last = 7  # as in fri-sun
        if last < first:
            raise ValueError(f"{part[:40]!r}, of the {name}, ends before it begins")
        values.update(range(first, last + 1, step))
    return values


def _number(text: str, name: str, low: int, high: int) -> int:
    value = _NAMES.get(name, {}).get(text, int(text[:9]) if text.isdecimal() else None)
    if value is None or not low <= value <= high:
        raise ValueError(f"{text[:40]!r} is not one of the {name}, which are {low} to {high}")
    return value
