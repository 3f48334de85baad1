"""Records of a schedule: its revisions, and what became of each time at which it was due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from pydantic import ValidationError

from parallelrun_core.documents.schema import SCHEMA
from parallelrun_core.errors import CorruptLog, InvalidInput
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.ids import job_id_at
from parallelrun_core.schedules.occurrences import Occurrences
from parallelrun_core.schedules.policy import FireOutcome, Missed
from parallelrun_core.schedules.trigger import occurrences, parsed_trigger

NAME_PATTERN: Final = r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$"


class Revision(msgspec.Struct, kw_only=True, frozen=True):
    """`revision.<number>.json`: a schedule as somebody has defined, enabled or disabled it; never changed."""

    schema: int = SCHEMA
    number: int
    schedule_id: str
    """Another one for each schedule that ever had this name."""
    made: float
    """Time when the first revision was: the start of a trigger that has none."""
    at: float
    """Time when this one was; what was due before is not made up."""
    is_enabled: bool
    trigger: dict[str, Any]
    missed: Missed
    """Policy for times at which no master ran: one job is made up for all of them, or none."""
    may_overlap: bool
    """True if a job is made while an earlier one has not ended."""
    display_name: str = ""
    description: str = ""
    tags: dict[str, str] = {}
    job: JobRecord
    """The job that is made, without its id; all checks are done and its code is in the store."""

    @property
    def owner(self) -> str:
        """The person whose schedule it is, and whose its jobs are; empty: nobody's in particular."""
        return self.job.owner

    def due(self) -> Occurrences:
        """Return when it is due.

        Raises:
            CorruptLog: this release, or this machine's data of time zones, can't tell.
        """
        try:
            return occurrences(parsed_trigger(self.trigger), created=moment(self.made))
        except (InvalidInput, ValidationError) as error:
            raise CorruptLog(f"The trigger of this schedule can't be read: {error}") from error

    def since(self) -> datetime:
        """Return what was due up to then is not made up: it was before the schedule was made, changed or enabled."""
        at = moment(int(self.at))
        return at - timedelta(seconds=1) if self.number == 1 else at  # the start itself may be due

    def job_id(self, due: datetime) -> str:
        """The id of the job for a time at which it is due: the same whoever asks. It sorts by that time."""
        return job_id_at(due.timestamp(), self.schedule_id, stamp(due))


class FireRecord(msgspec.Struct, kw_only=True, frozen=True):
    """`fires/<time>.json`: what became of a time at which a schedule was due; never changed."""

    schema: int = SCHEMA
    due: str
    """RFC 3339, UTC."""
    at: float
    """Time when it was decided."""
    outcome: FireOutcome
    revision: int
    job_id: str = ""
    """Id of the job that was made; empty if none was."""
    passed_over: int = 0
    """Times before it that nobody has acted upon, up to 1,000."""
    why: str = ""
    """Why no job was made."""


def moment(seconds: float) -> datetime:
    """Return the moment that is this many seconds after the epoch."""
    return datetime.fromtimestamp(seconds, UTC)


def stamp(due: datetime) -> str:
    """A time in UTC as the name of a file; later ones sort after earlier ones."""
    return due.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def of_stamp(name: str) -> datetime | None:
    """The time that such a name stands for; None if it is no such name."""
    try:
        return datetime.strptime(name, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def shown(due: datetime) -> str:
    """A time as RFC 3339 has it, in UTC."""
    return due.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
