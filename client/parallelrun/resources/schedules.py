"""Schedules: jobs that are made when they are due."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from parallelrun.models import Fire, Job, Schedule
from parallelrun.packaging.submission import notes_on
from parallelrun.resources.resource import Definition, Definitions
from parallelrun.resources.sending import SendsJobs

if TYPE_CHECKING:
    from parallelrun_core.code.source import CodeSource
    from parallelrun_core.schedules.document import ScheduleReading

_PAGE: Final = 200


class Schedules(Definitions[Schedule], SendsJobs):
    """The schedules of a server. The history of one that is deleted goes, too; its jobs stay."""

    path = "/v1/schedules"
    model = Schedule

    def create(self, definition: Definition, *, upload_code: bool = True) -> Schedule:
        """Define a schedule, or define it anew, with its job as it is now.

        Args:
            definition: its document, or the path of a file with it, as YAML or JSON (docs/schedules.md). Relative paths
                start from the folder of that file, or from the current folder.
            upload_code: send the code of its job. Otherwise the server reads it at the same path, now.

        Raises:
            InvalidInput: something is wrong with it. Nothing was sent.
            InvalidRequest: the server refuses it, as for a path that jobs may not use.
        """
        reading = self._read(definition)
        create_job, sources = self._create_job(reading, upload_code=upload_code)
        document = {**_fields(reading), "create_job": create_job}
        schedule = self._send("PUT", self.url(reading.name), Schedule, document, sources)
        if reading.job is None:
            return schedule
        notes = notes_on(reading.job, schedule.job.notes)
        return msgspec.structs.replace(schedule, job=msgspec.structs.replace(schedule.job, notes=notes))

    def enable(self, name: str) -> Schedule:
        """Make its jobs from now on, when they are due. What was due meanwhile is not made up. Raises NotFound."""
        return self._ask("POST", f"{self.url(name)}:enable", Schedule)

    def disable(self, name: str) -> Schedule:
        """Make no more jobs until it is enabled again. Those that it has made go on. Raises NotFound."""
        return self._ask("POST", f"{self.url(name)}:disable", Schedule)

    def trigger(self, name: str, *, idempotency_key: str | None = None) -> Job:
        """Make one of its jobs now, whether it is due or not.

        Args:
            idempotency_key: calling again with the same one gives the same job. Random by default, so that a request
                whose answer was lost can be repeated.

        Raises:
            NotFound: there is none of this name.
        """
        headers = {"Idempotency-Key": idempotency_key or secrets.token_hex(16)}
        return self._ask("POST", f"{self.url(name)}:trigger", Job, headers=headers)

    def history(self, name: str, *, limit: int | None = None) -> Iterator[Fire]:
        """Return what became of the times at which it was due, the latest first. Raises NotFound."""
        return islice(self._all(f"{self.url(name)}/history", Fire, limit=min(limit or _PAGE, _PAGE)), limit)

    def _read(self, definition: Definition) -> ScheduleReading:
        from parallelrun.job_file.reading import read_definition
        from parallelrun.resources.names import resolver_over
        from parallelrun_core.schedules.document import read_schedule

        with read_definition(definition) as (document, folder):
            names = resolver_over(self._transport)(folder)
            return read_schedule(document, created=datetime.now(UTC), folder=folder, names=names)

    def _create_job(
        self, reading: ScheduleReading, *, upload_code: bool
    ) -> tuple[dict[str, Any], dict[str, CodeSource]]:
        """The job of a schedule as the server takes it, and its code."""
        if reading.job is None:
            return {"job": f"azureml:{reading.like}", **reading.changes}, {}
        return self._job_and_code(reading.job.spec, upload_code=upload_code)


def _fields(reading: ScheduleReading) -> dict[str, Any]:
    """The fields of a schedule as the server takes them, but for its job."""
    from parallelrun_core.schedules.trigger import as_document

    return {
        "name": reading.name,
        "display_name": reading.display_name,
        "description": reading.description,
        "tags": reading.tags,
        "trigger": as_document(reading.trigger),
        "missed_runs": reading.missed,
        "allow_overlap": reading.may_overlap,
    }
