"""Due whenever something has landed: a file is in a folder. Nobody knows that ahead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Final, Literal

from parallelrun_core.schedules.occurrences import Occurrences
from parallelrun_core.schedules.records import utc_time
from parallelrun_core.schedules.trigger_base import Trigger


@dataclass(frozen=True)
class Landings:
    folder: Path
    last: datetime | None = None

    def after(self, moment: datetime) -> Iterator[datetime]:
        times = {utc_time(int(file.stat().st_mtime)) for file in self.folder.iterdir()}
        return iter(sorted(each for each in times if each > moment))


class LandingTrigger(Trigger):
    """Due when a file is in a folder."""

    poll_s = 5.0
    type: Literal["landing"]
    folder: str

    def due(self, zone: tzinfo, first: datetime, last: datetime | None, pointer: str) -> Occurrences:
        return Landings(Path(self.folder))

    def describe(self) -> str:
        return f"each landing in {self.folder}"


TRIGGER: Final = LandingTrigger
