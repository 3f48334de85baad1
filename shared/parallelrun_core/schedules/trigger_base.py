"""The base of all kinds of triggers: their time zone, their first and last moment, and what each kind must say."""

from __future__ import annotations

from datetime import UTC, date, datetime, tzinfo
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from parallelrun_core.described import Strict
from parallelrun_core.errors import InvalidInput
from parallelrun_core.schedules.occurrences import Occurrences
from parallelrun_core.schedules.wall_clock import moment_of
from parallelrun_core.schedules.zones import zone_named


def lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _as_text(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime | date) else value  # as YAML reads a date without quotes


Times = Annotated[str | None, BeforeValidator(_as_text), Field(max_length=64)]


class Trigger(Strict):
    """A rule that says when a schedule is due."""

    mappings: ClassVar[tuple[str, ...]] = ()
    """Fields that are mappings themselves."""
    poll_s: ClassVar[float] = 0.0
    """Masters ask so often what has been due since, for events that nobody can foretell; 0: all times are known ahead,
    and they ask when the next one is there."""

    type: str
    time_zone: str = Field(default="UTC", min_length=1, max_length=128)
    """A name of the tz database or of Windows."""
    start_time: Times = None
    """ISO 8601, by the clocks of the time zone unless it says otherwise. By default, when the schedule is made."""
    end_time: Times = None
    """Likewise; by default, none."""

    def occurrences(self, *, created: datetime, pointer: str) -> Occurrences:
        """Return when it is due.

        Args:
            created: when the schedule was made: its start if it has no other.
            pointer: where in the document the trigger is.

        Raises:
            InvalidInput: a time, the zone or a field of the kind can't be read.
        """
        zone = zone_named(self.time_zone, f"{pointer}/time_zone")
        first = _moment(self.start_time, zone, f"{pointer}/start_time") or created.replace(microsecond=0)
        last = _moment(self.end_time, zone, f"{pointer}/end_time")
        if last is not None and last < first:
            raise InvalidInput.at(f"{pointer}/end_time", "it is before the start")
        return self.due(zone, first, last, pointer)

    def due(self, zone: tzinfo, first: datetime, last: datetime | None, pointer: str) -> Occurrences:
        """Return when it is due between two moments; see `occurrences`."""
        raise NotImplementedError

    def describe(self) -> str:
        """Return a line for people about when it is due, without its time zone, start and end."""
        raise NotImplementedError


def _moment(text: str | None, zone: tzinfo, pointer: str) -> datetime | None:
    """The moment that a text stands for, in whole seconds."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text.strip()).replace(microsecond=0)
        return time.astimezone(UTC) if time.tzinfo is not None else moment_of(time, zone)
    except (ValueError, OverflowError):
        raise InvalidInput.at(pointer, f"{text!r} can't be read as a time", "2026-07-31T09:30:00") from None
