"""Triggers of schedules: cron expressions and recurrences, as the reference has them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, ValidationError

from parallelrun_core.described import Strict
from parallelrun_core.errors import InvalidInput
from parallelrun_core.problems import Problems
from parallelrun_core.schedules.cron import parse_cron
from parallelrun_core.schedules.occurrences import ByTheClock, ByTheTime, Occurrences, next_of
from parallelrun_core.schedules.recurrence import WEEK_DAYS, Recurrence
from parallelrun_core.schedules.wall_clock import moment_of, wall_time
from parallelrun_core.schedules.zones import zone_named
from parallelrun_core.spec.problems import problem_of

_LONGEST: Final = 10_000
"""Of the numbers of an interval."""
_UNITS: Final = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}


def _as_list(value: object) -> object:
    return [] if value is None else value if isinstance(value, list | tuple) else [value]


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _as_text(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime | date) else value  # as YAML reads a date without quotes


Times = Annotated[str | None, BeforeValidator(_as_text), Field(max_length=64)]
Numbers = Annotated[tuple[int, ...], BeforeValidator(_as_list), Field(max_length=60)]
WeekDay = Annotated[
    Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"], BeforeValidator(_lower)
]


class Pattern(Strict):
    """The times of a recurrence by day, week or month."""

    hours: Numbers = ()
    """0 to 23; by default that of the start."""
    minutes: Numbers = ()
    """0 to 59; by default that of the start."""
    week_days: Annotated[tuple[WeekDay, ...], BeforeValidator(_as_list), Field(max_length=7)] = ()
    """`monday` to `sunday`."""
    month_days: Numbers = ()
    """1 to 31. A month without such a day is passed over."""


class _Trigger(Strict):
    time_zone: str = Field(default="UTC", min_length=1, max_length=128)
    """A name of the tz database or of Windows."""
    start_time: Times = None
    """ISO 8601, by the clocks of the time zone unless it says otherwise. By default, when the schedule is made."""
    end_time: Times = None
    """Likewise; by default, none."""


class CronTrigger(_Trigger):
    """Due at the times that a cron expression says."""

    type: Annotated[Literal["cron"], BeforeValidator(_lower)]
    expression: str = Field(max_length=1024)
    """`MINUTES HOURS DAYS MONTHS DAYS-OF-WEEK`."""


class RecurrenceTrigger(_Trigger):
    """Due every so often."""

    type: Annotated[Literal["recurrence"], BeforeValidator(_lower)]
    frequency: Annotated[Literal["minute", "hour", "day", "week", "month"], BeforeValidator(_lower)]
    interval: int = Field(default=1, ge=1, le=_LONGEST)
    """Number of minutes, hours, days, weeks or months."""
    pattern: Pattern | None = Field(default=None, alias="schedule")
    """Time when on such a day."""


Trigger = CronTrigger | RecurrenceTrigger
_MODELS: Final[dict[str, type[CronTrigger] | type[RecurrenceTrigger]]] = {
    "cron": CronTrigger,
    "recurrence": RecurrenceTrigger,
}


def read_trigger(document: object, *, created: datetime, pointer: str = "/trigger") -> Trigger:
    """The trigger that a document describes.

    Args:
        created: when the schedule is made; it must be due at least once after that.
        pointer: where in the document it is.

    Raises:
        InvalidInput: with one problem for each wrong field.
    """
    if not isinstance(document, dict):
        raise InvalidInput.at(pointer, "must be a mapping with a type, which is cron or recurrence")
    model = _MODELS.get(str(document.get("type")).lower())
    if model is None:
        raise InvalidInput.at(f"{pointer}/type", f"there is no trigger {document.get('type')!r}", "cron or recurrence")
    try:
        trigger = model.model_validate(document)
    except ValidationError as error:
        problems = (problem_of(model, details) for details in error.errors())
        placed = tuple(replace(each, pointer=pointer + each.pointer) for each in problems)
        raise InvalidInput(problems=placed) from None
    if next_of(occurrences(trigger, created=created, pointer=pointer), created) is None:
        raise InvalidInput.at(pointer, "nothing is ever due", "check end_time, and whether there are such days")
    return trigger


def parsed_trigger(document: dict[str, Any]) -> Trigger:
    """The trigger that was read before, as `as_document` gave it.

    Raises:
        ValidationError: it isn't one that this release knows.
    """
    return _MODELS.get(document.get("type", ""), CronTrigger).model_validate(document)


def occurrences(trigger: Trigger, *, created: datetime, pointer: str = "/trigger") -> Occurrences:
    """Return when it is due.

    Args:
        created: when the schedule was made: its start if it has no other.
        pointer: where in the document the trigger is.

    Raises:
        InvalidInput: a time, the zone or the expression can't be read.
    """
    zone = zone_named(trigger.time_zone, f"{pointer}/time_zone")
    first = _moment(trigger.start_time, zone, f"{pointer}/start_time") or created.replace(microsecond=0)
    last = _moment(trigger.end_time, zone, f"{pointer}/end_time")
    if last is not None and last < first:
        raise InvalidInput.at(f"{pointer}/end_time", "it is before the start")
    if isinstance(trigger, CronTrigger):
        return ByTheClock(parse_cron(trigger.expression, f"{pointer}/expression"), zone, first, last)
    pattern = trigger.pattern or Pattern()
    _check_pattern(trigger.frequency, pattern, f"{pointer}/schedule")
    if trigger.frequency in _UNITS:
        return ByTheTime(first, _UNITS[trigger.frequency] * trigger.interval, last)
    return ByTheClock(_recurrence(trigger, pattern, wall_time(first, zone)), zone, first, last)


def _recurrence(trigger: RecurrenceTrigger, pattern: Pattern, start: datetime) -> Recurrence:
    week_days = frozenset(WEEK_DAYS.index(each) for each in pattern.week_days)
    month_days = frozenset(pattern.month_days)
    if trigger.frequency == "week" and not week_days:
        week_days = frozenset({start.weekday()})
    if trigger.frequency == "month" and not week_days and not month_days:
        month_days = frozenset({start.day})
    return Recurrence(
        frequency=trigger.frequency,  # type: ignore[arg-type]
        interval=trigger.interval,
        first=start.date(),
        hours=tuple(sorted(set(pattern.hours))) or (start.hour,),
        minutes=tuple(sorted(set(pattern.minutes))) or (start.minute,),
        second=0 if pattern.hours or pattern.minutes else start.second,
        week_days=week_days,
        month_days=month_days,
    )


def _check_pattern(frequency: str, pattern: Pattern, pointer: str) -> None:
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


def _moment(text: str | None, zone: tzinfo, pointer: str) -> datetime | None:
    """The moment that a text stands for, in whole seconds."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text.strip()).replace(microsecond=0)
        return time.astimezone(UTC) if time.tzinfo is not None else moment_of(time, zone)
    except (ValueError, OverflowError):
        raise InvalidInput.at(pointer, f"{text!r} can't be read as a time", "2026-07-31T09:30:00") from None


def as_document(trigger: Trigger) -> dict[str, Any]:
    """The trigger as a document has it."""
    return trigger.model_dump(mode="json", by_alias=True, exclude_defaults=True) | {"type": trigger.type}
