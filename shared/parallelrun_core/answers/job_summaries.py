"""Jobs in short, as lists show them."""

from __future__ import annotations

from typing import Literal

from parallelrun_core.answers.answer import Answer, JobId, JobStateText, OpenEnum, Time
from parallelrun_core.answers.jobs import JobType, Pace, ParentStep


class JobMaker(Answer, kw_only=True, frozen=True):
    """The schedule, endpoint or pipeline that made a job."""

    kind: OpenEnum[Literal["schedule", "endpoint", "pipeline"]]
    name: str
    """The name of the schedule or endpoint; the id of the pipeline."""


class JobCounts(Answer, kw_only=True, frozen=True):
    """Counts of a job, or of the steps of a pipeline."""

    total: int
    """Mini-batches found so far, or steps."""
    is_total_final: bool
    """True if no more will be found."""
    done: int
    failed: int
    running: int
    items: int
    """Items that are decided."""
    items_failed: int
    """Items for which something was raised, timed out or died."""
    rows: int


class JobSummary(Answer, kw_only=True, frozen=True):
    """A job in short; `GET /v1/jobs/{job_id}` has all of it."""

    id: JobId
    type: OpenEnum[JobType]
    name: str
    script: str
    """The entry script, for jobs without a name."""
    state: JobStateText
    tags: dict[str, str]
    compute: str
    owner: str
    parent: ParentStep | None
    maker: JobMaker | None
    """Null: a person made it."""
    submitted: Time
    started: Time | None
    ended: Time | None
    counts: JobCounts
    pace: Pace | None
    archived: bool
    why: str
    """The reason why it failed, in a sentence; empty: it has not."""


class JobSummaryPage(Answer, kw_only=True, frozen=True):
    """Some of the jobs that were searched for."""

    items: list[JobSummary]
    total: int
    """All that were found."""
    by_state: dict[JobStateText, int]
    """The number of jobs in each state that would be found if no state were asked for."""
    waiting: int = 0
    """Jobs among those in `processing` that have no worker yet."""
    paused: int = 0
    """Jobs that somebody has paused."""
    next_page_token: str | None = None
    """Pass it as `page_token` for the jobs that follow; null: there are none."""
