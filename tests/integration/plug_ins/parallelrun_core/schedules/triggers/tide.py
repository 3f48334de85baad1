"""Due at each high tide: 12 hours and 25 minutes after the one before."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Final, Literal

from parallelrun_core.schedules.occurrences import ByTheTime, Occurrences
from parallelrun_core.schedules.trigger_base import Trigger


class TideTrigger(Trigger):
    """Due at each high tide."""

    type: Literal["tide"]
    harbor: str
    """The harbor whose tides count."""

    def due(self, zone: tzinfo, first: datetime, last: datetime | None, pointer: str) -> Occurrences:
        return ByTheTime(first, timedelta(hours=12, minutes=25), last)

    def describe(self) -> str:
        return f"each high tide at {self.harbor}"


TRIGGER: Final = TideTrigger
