"""Due at each spring tide: 14 days and 18 hours after the one before."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Final, Literal

from parallelrun_core.schedules.occurrences import IntervalOccurrences, Occurrences
from parallelrun_core.schedules.trigger_base import Trigger


class SpringTideTrigger(Trigger):
    """Due at each spring tide."""

    type: Literal["spring_tide"]
    harbor: str
    """The harbor whose tides count."""

    def due(self, zone: tzinfo, first: datetime, last: datetime | None, pointer: str) -> Occurrences:
        return IntervalOccurrences(first, timedelta(days=14, hours=18), last)

    def describe(self) -> str:
        return f"each spring tide at {self.harbor}"


TRIGGER: Final = SpringTideTrigger
