"""A job as the API shows it: from what is in its folder, and what Redis knows of it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any, get_args
from zlib import crc32

import msgspec

from parallelrun_core.answers import jobs as answers
from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.folder.tags import submitted_tags
from parallelrun_core.store.registry import JobStatus
from parallelrun_core.wire import pace
from parallelrun_core.wire.ending import how_completed
from parallelrun_core.wire.failure import ErrorCount, JobFailure
from parallelrun_core.wire.masking import Mask, masked_spec
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState, Priority


def job_of(
    record: JobRecord,
    status: JobStatus | None,
    result: JobResult | None,
    *,
    mask: Mask | None = None,
    spec: dict[str, Any] | None = None,
    queued_at: float | None = None,
) -> answers.Job:
    """A job as it is shown, without its steps. A recorded result takes precedence; a job that Redis doesn't know is
    queued.

    Args:
        mask: of its record, if the caller has it.
        spec: as it may be shown, if the caller has it.
        queued_at: time of the last resume or retry, if there was one.
    """
    mask = mask or Mask(record.spec)
    queued = record.submitted if queued_at is None else queued_at
    progress = _progress(record, status, result)
    state, failure, started, ended = course_of(result or status)
    is_paused = result is None and status is not None and status.is_paused
    return answers.Job(
        id=record.job_id,
        type=type_of(record),
        parent=answers.ParentStep(job=record.parent.job_id, step=record.parent.step) if record.parent else None,
        name=str(record.spec.get("name", "")),
        owner=record.owner,
        state=state,
        version=status.version if status else 0,
        submitted=rfc3339(record.submitted),
        started=rfc3339(started) if started is not None else None,
        ended=rfc3339(ended) if ended is not None else None,
        progress=progress,
        summary=mask.printable(summary_of(result)) if result else "",
        pace=None
        if record.is_pipeline
        else pace_of(state, progress, queued_at=queued, started=started, ended=ended, is_paused=is_paused),
        failure=_failure(failure, mask) if failure else None,
        errors=_errors(result.errors, mask) if result else [],
        skipped=result.skipped if result else 0,
        paused=is_paused,
        priority=_priority(record, status),
        output=_output(result) if result and result.output else None,
        warnings=[mask.printable(warning) for warning in result.warnings] if result else [],
        metrics=result.metrics if result else {},
        spec=masked_spec(record.spec) if spec is None else spec,
        tags=submitted_tags(record.spec),
        notes=[mask.printable(note) for note in record.notes],
        links=_links(record.job_id),
    )


def course_of(latest: JobResult | JobStatus | None) -> tuple[JobState, JobFailure | None, float | None, float | None]:
    """The state of a job, its failure, its start and its end; queued if nothing is known of it."""
    if latest is None:
        return JobState.QUEUED, None, None, None
    return latest.state, latest.failure, latest.started, latest.ended


def _progress(record: JobRecord, status: JobStatus | None, result: JobResult | None) -> Progress:
    progress = result.progress if result else status.progress if status else Progress()
    # What was taken over is known before a leader counts.
    return msgspec.structs.replace(progress, resumed=record.resumed.mini_batches) if record.resumed else progress


def _priority(record: JobRecord, status: JobStatus | None) -> Priority:
    priority = status.priority if status is not None and status.priority else str(record.spec.get("priority") or "")
    return next((each for each in get_args(Priority) if each == priority), "normal")


def pace_of(
    state: JobState,
    progress: Progress,
    *,
    queued_at: float,
    started: float | None,
    ended: float | None,
    is_paused: bool = False,
) -> answers.Pace:
    """The pace of a job as it is shown now.

    Args:
        queued_at: time of the submission, or of the last resume or retry, for a job that no leader has begun since.
        is_paused: nobody knows when it ends.
    """
    now = time.time()
    if state is JobState.QUEUED:
        progress = msgspec.structs.replace(progress, queued_at=queued_at, worked_from=0.0)
    elif not progress.queued_at and started is not None:  # led by an earlier release
        progress = msgspec.structs.replace(progress, queued_at=queued_at, worked_from=started)
    # The end as it is shown, in milliseconds: whoever divides by it gets the same pace of a job of a few of them.
    until = epoch(rfc3339(ended)) if ended and state.is_terminal else now
    left_s = pace.left_s(progress, now) if state is JobState.PROCESSING and not is_paused else None
    return answers.Pace(
        standing=pace.standing_of(state, progress, is_paused=is_paused).value,
        as_of=rfc3339(until),
        waited_s=round(pace.waited_s(progress, until), 3),
        ran_s=round(pace.ran_s(progress, until), 3),
        items_per_s=pace.overall_items_per_s(progress, until) if state.is_terminal else pace.items_per_s(progress, now),
        mini_batches_per_s=None if state.is_terminal else pace.mini_batches_per_s(progress, now),
        left_s=left_s,
        ends=rfc3339(now + left_s) if left_s is not None else None,
    )


def epoch(timestamp: str) -> float:
    """The seconds since the epoch of a time as it is shown."""
    return datetime.fromisoformat(timestamp).timestamp()


def etag(job: answers.Job, encoded: str) -> str:
    """Changes whenever the job does, also when its result is recorded after it has reached a terminal state.

    Args:
        encoded: the answer with it, for what changes of the steps of a pipeline.
    """
    is_marked = (
        job.tags != submitted_tags(job.spec) or job.archived or job.removed_at is not None or job.waiting is not None
    )
    steps = f"-{crc32(encoded.encode()):x}" if job.steps or is_marked else ""
    return f'"{job.version}-{job.state}-{int(job.ended is not None)}{int(job.output is not None)}{steps}"'


def matches(if_none_match: str, tag: str) -> bool:
    """Return whether an `If-None-Match` header names this ETag (RFC 9110, section 13.1.2)."""
    tags = {part.strip().removeprefix("W/") for part in if_none_match.split(",")}
    return tag in tags or tags == {"*"}


def type_of(record: JobRecord) -> answers.JobType:
    if record.is_pipeline:
        return "pipeline"
    return "command" if record.spec.get("command") else "parallel"


def _failure(failure: JobFailure, mask: Mask) -> JobFailure:
    return msgspec.structs.replace(
        failure,
        summary=mask.printable(failure.summary),
        first_cause=mask.printable(failure.first_cause),
        traceback=mask.printable(failure.traceback),
        hint=mask.printable(failure.hint),
        errors=_errors(failure.errors, mask),
    )


def _errors(errors: Iterable[ErrorCount], mask: Mask) -> list[ErrorCount]:
    def masked(error: ErrorCount) -> ErrorCount:
        fields = msgspec.structs.asdict(error).items()
        texts = {name: mask.printable(value) for name, value in fields if isinstance(value, str)}
        return msgspec.structs.replace(error, **texts)

    return [masked(error) for error in errors]


def summary_of(result: JobResult) -> str:
    """Return how a job has ended, in one sentence."""
    if result.state is JobState.COMPLETED:
        return f"completed{how_completed(result.progress, result.errors)}"
    return f"{result.state}: {result.failure.summary}" if result.failure else str(result.state)


def _output(result: JobResult) -> answers.OutputFile:
    return answers.OutputFile(
        path=result.output, bytes=result.output_bytes, sha256=result.output_sha256, order=result.order
    )


def _links(job_id: str) -> answers.Links:
    job_url = f"/v1/jobs/{job_id}"
    return answers.Links(
        self=job_url,
        events=f"{job_url}/events",
        mini_batches=f"{job_url}/mini-batches",
        logs=f"{job_url}/logs",
        outputs=f"{job_url}/outputs",
        metrics=f"{job_url}/metrics",
        cancel=f"{job_url}:cancel",
    )
