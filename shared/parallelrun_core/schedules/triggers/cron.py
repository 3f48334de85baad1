"""Due at the times that a cron expression says."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from parallelrun_core.schedules.cron import parse_cron
from parallelrun_core.schedules.occurrences import Occurrences, WallClockOccurrences
from parallelrun_core.schedules.trigger_base import Trigger, lower


class CronTrigger(Trigger):
    """Due at the times that a cron expression says."""

    type: Annotated[Literal["cron"], BeforeValidator(lower)]
    expression: str = Field(max_length=1024)
    """`MINUTES HOURS DAYS MONTHS DAYS-OF-WEEK`."""

    def due(self, zone: tzinfo, first: datetime, last: datetime | None, pointer: str) -> Occurrences:
        return WallClockOccurrences(parse_cron(self.expression, f"{pointer}/expression"), zone, first, last)

    def describe(self) -> str:
        return self.expression


TRIGGER: Final = CronTrigger
