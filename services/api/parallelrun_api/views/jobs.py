"""Jobs as the API shows them: the folder is the truth, Redis has what is going on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from parallelrun_api import models
from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.folder.job_folder import JobFolder, JobRecord, JobResult, job_folder
from parallelrun_core.folder.layout import job_ids
from parallelrun_core.folder.unreadable import SkippedJobs
from parallelrun_core.masking import Mask, masked_spec
from parallelrun_core.progress import Progress
from parallelrun_core.states import JobState
from parallelrun_core.store.connection import CONNECTION_ERRORS

if TYPE_CHECKING:
    from parallelrun_core.failure import JobFailure
    from parallelrun_core.store.registry import JobStatus, Registry

_MOST_CHECKED: Final = 2000
"""Jobs that are checked for one page with a state: an answer must not take long because of jobs that it leaves out."""


class Jobs:
    """Reads jobs. Safe to share between threads."""

    def __init__(self, root: Path, registry: Registry) -> None:
        self.root = root
        self._registry = registry
        self._skipped = SkippedJobs(root)

    def folder(self, job_id: str) -> JobFolder:
        """The folder of a job whose id came from outside.

        Raises:
            NotFound: this can't be a job's id.
        """
        return job_folder(self.root, job_id)

    def get(self, job_id: str) -> models.Job:
        """One job.

        Raises:
            NotFound: there is none.
            NewerSchema, CorruptLog: its records can't be read.
            RedisError: it hasn't ended, and Redis is away.
        """
        folder = self.folder(job_id)
        record = folder.record()
        # In this order: a job that ends between the two is then seen as ended.
        status, away = self._status(job_id)
        result = folder.result()
        if result is None and away is not None:
            raise away
        return job_of(record, status, result)

    def submitted(self, job_id: str) -> models.Job:
        """A job that was just accepted, even while Redis is away."""
        record = self.folder(job_id).record()
        status, _ = self._status(job_id)
        return job_of(record, status, self.folder(job_id).result())

    def _status(self, job_id: str) -> tuple[JobStatus | None, Exception | None]:
        try:
            return self._registry.status(job_id), None
        except NotFound:
            return None, None
        except CONNECTION_ERRORS as error:
            return None, error

    def ids(self) -> list[str]:
        """Every job, the newest first: by their folders, since Redis may have been wiped."""
        return job_ids(self.root)[::-1]

    def page(self, *, before: str, limit: int, state: JobState | None) -> tuple[list[models.Job], str | None]:
        """Jobs older than `before`, the newest first, and the last one that was checked if there may be more."""
        jobs: list[models.Job] = []
        checked = 0
        last = ""
        for job_id in self.ids():
            if before and job_id >= before:
                continue
            if len(jobs) == limit or checked == _MOST_CHECKED:
                return jobs, last
            checked += 1
            last = job_id
            jobs += (job for job in self._if_there(job_id) if state is None or job.state == state)
        return jobs, None

    def _if_there(self, job_id: str) -> Iterator[models.Job]:
        try:
            yield self.get(job_id)
        except NotFound:
            return  # it is being created or deleted
        except (NewerSchema, CorruptLog) as error:
            self._skipped.report(job_id, error)

    def has_ended(self, job_id: str) -> bool:
        """Whether the job's result is recorded: nothing about it will change, unless it is reopened."""
        return self.folder(job_id).has_ended


def job_of(record: JobRecord, status: JobStatus | None, result: JobResult | None) -> models.Job:
    """A job as it is shown. A recorded result takes precedence; a job that Redis doesn't know is queued."""
    mask = Mask(record.spec)
    progress = result.progress if result else status.progress if status else Progress()
    if record.resumed:
        progress.resumed = record.resumed.mini_batches  # known before a leader counts
    failure = result.failure if result else status.failure if status else None
    started = result.started if result else status.started if status else None
    ended = result.ended if result else status.ended if status else None
    return models.Job(
        id=record.job_id,
        name=str(record.spec.get("name", "")),
        state=result.state if result else status.state if status else JobState.QUEUED,
        version=status.version if status else 0,
        submitted=rfc3339(record.submitted),
        started=rfc3339(started) if started is not None else None,
        ended=rfc3339(ended) if ended is not None else None,
        progress=models.Progress(**msgspec.structs.asdict(progress)),
        failure=_failure(failure, mask) if failure else None,
        output=_output(result) if result and result.output else None,
        warnings=[mask.printable(warning) for warning in result.warnings] if result else [],
        metrics=result.metrics if result else {},
        spec=masked_spec(record.spec),
        notes=[mask.printable(note) for note in record.notes],
        links=_links(record.job_id),
    )


def etag(job: models.Job) -> str:
    """Changes whenever the job does, also when its result is recorded after it has reached a terminal state."""
    return f'"{job.version}-{job.state}-{int(job.ended is not None)}{int(job.output is not None)}"'


def matches(if_none_match: str, tag: str) -> bool:
    """Whether an `If-None-Match` header names this ETag (RFC 9110, section 13.1.2)."""
    known = {part.strip().removeprefix("W/") for part in if_none_match.split(",")}
    return tag in known or known == {"*"}


def rfc3339(timestamp: float) -> str:
    """Seconds since the epoch as UTC with milliseconds."""
    return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _failure(failure: JobFailure, mask: Mask) -> models.Failure:
    return models.Failure(
        code=failure.code,
        summary=mask.printable(failure.summary),
        first_cause=mask.printable(failure.first_cause),
        traceback=mask.printable(failure.traceback),
        sample_mini_batches=failure.sample_mini_batches,
        log=failure.log,
        hint=mask.printable(failure.hint),
        error_category=failure.error_category,
        errors=[
            models.ErrorCount(
                category=error.category,
                message=mask.printable(error.message),
                count=error.count,
                sample_mini_batches=error.sample_mini_batches,
                log=error.log,
            )
            for error in failure.errors
        ],
    )


def _output(result: JobResult) -> models.OutputFile:
    return models.OutputFile(
        path=result.output, bytes=result.output_bytes, sha256=result.output_sha256, order=result.order
    )


def _links(job_id: str) -> models.Links:
    own = f"/v1/jobs/{job_id}"
    return models.Links(
        self=own,
        events=f"{own}/events",
        mini_batches=f"{own}/mini-batches",
        logs=f"{own}/logs",
        outputs=f"{own}/outputs",
        metrics=f"{own}/metrics",
        cancel=f"{own}:cancel",
    )
