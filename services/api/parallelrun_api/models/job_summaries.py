"""Jobs in short, as lists show them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from parallelrun_api.models.answer import JOB_ID_EXAMPLE, Answer, Time
from parallelrun_api.models.jobs import JobType, Pace, ParentStep
from parallelrun_core.wire.states import JobState


class JobMaker(Answer):
    """The schedule, endpoint or pipeline that made a job."""

    kind: Literal["schedule", "endpoint", "pipeline"]
    name: str
    """The name of the schedule or endpoint; the id of the pipeline."""


class JobCounts(Answer):
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


class JobSummary(Answer):
    """A job in short; `GET /v1/jobs/{job_id}` has all of it."""

    id: str = Field(examples=[JOB_ID_EXAMPLE])
    type: JobType
    name: str
    script: str
    """The entry script, for jobs without a name."""
    state: JobState
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


class JobSummaryPage(Answer):
    """Some of the jobs that were searched for."""

    items: list[JobSummary]
    total: int
    """All that were found."""
    by_state: dict[JobState, int]
    """The number of jobs in each state that would be found if no state were asked for."""
    next_page_token: str | None = None
    """Pass it as `page_token` for the jobs that follow; null: there are none."""
