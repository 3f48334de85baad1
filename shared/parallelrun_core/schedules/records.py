"""Records of a schedule: its revisions, and what became of each time at which it was due."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from pydantic import ValidationError

from parallelrun_core.documents.schema import SCHEMA
from parallelrun_core.errors import CorruptLog, InvalidInput
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.ids import job_id_at
from parallelrun_core.schedules.occurrences import Occurrences
from parallelrun_core.schedules.policy import FireOutcome, Missed
from parallelrun_core.schedules.trigger import occurrences, parsed_trigger
from parallelrun_core.schedules.trigger_base import Trigger


class Revision(msgspec.Struct, kw_only=True, frozen=True):
    """A schedule as somebody has defined, enabled or disabled it: `revision.<number>.json`, never changed."""

    schema: int = SCHEMA
    number: int
    schedule_id: str
    """The id of the schedule; one that is deleted and defined again under its name has another one."""
    made: float
    """Seconds since the epoch of the first revision: the start of a trigger that has none."""
    at: float
    """Seconds since the epoch of this revision; no job is made for times before it."""
    is_enabled: bool
    trigger: dict[str, Any]
    missed: Missed
    """Policy for times at which no master ran: one job is made up for all of them, or none."""
    may_overlap: bool
    """A job is also made while an earlier one has not ended."""
    display_name: str = ""
    description: str = ""
    tags: dict[str, str] = {}
    job: JobRecord
    """The jobs to be made, but for their ids; all checks are done, and the code is in the store."""

    @property
    def owner(self) -> str:
        """The person who owns the schedule and its jobs; empty: nobody in particular."""
        return self.job.owner

    def due(self) -> Occurrences:
        """Return the times at which a job is due.

        Raises:
            CorruptLog: this release, or this machine's data of time zones, can't tell.
        """
        with self._readable_trigger() as trigger:
            return occurrences(trigger, created=utc_time(self.made))

    def poll_s(self) -> float:
        """Return how often to ask when nothing is known to be due, as `Trigger.poll_s`. Raises as `due`."""
        with self._readable_trigger() as trigger:
            return trigger.poll_s

    @contextmanager
    def _readable_trigger(self) -> Iterator[Trigger]:
        try:
            yield parsed_trigger(self.trigger)
        except (InvalidInput, ValidationError) as error:
            raise CorruptLog(f"The trigger of this schedule can't be read: {error}") from error

    def since(self) -> datetime:
        """Return the time after which jobs are due by this revision: when the schedule was made, changed or enabled."""
        at = utc_time(int(self.at))
        return at - timedelta(seconds=1) if self.number == 1 else at  # the start itself may be due

    def job_id(self, due: datetime) -> str:
        """The id of the job that is due at this time: the same whoever asks. Ids sort by the times."""
        return job_id_at(due.timestamp(), self.schedule_id, stamp(due))


class FireRecord(msgspec.Struct, kw_only=True, frozen=True):
    """The outcome of a time at which a schedule was due: `fires/<time>.json`, never changed."""

    schema: int = SCHEMA
    due: str
    """RFC 3339, UTC."""
    at: float
    """Seconds since the epoch of the decision."""
    outcome: FireOutcome
    revision: int
    job_id: str = ""
    """Id of the job that was made; empty if none was."""
    passed_over: int = 0
    """Number of earlier due times for which no job was made, as no master ran; up to 1,000."""
    why: str = ""
    """Why no job was made."""


def utc_time(seconds: float) -> datetime:
    """The time that is this many seconds after the epoch, in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def stamp(due: datetime) -> str:
    """A time as the name of a file, in UTC, such as `20261124T013000Z`: names sort as times do."""
    return due.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def time_of_stamp(name: str) -> datetime | None:
    """The time of which this is the `stamp`; None: it is none."""
    try:
        return datetime.strptime(name, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def rfc3339_of(due: datetime) -> str:
    """A time in RFC 3339, in UTC, such as `2026-11-24T01:30:00Z`."""
    return due.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
