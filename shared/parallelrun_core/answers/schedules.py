"""Schedules."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from parallelrun_core.answers.answer import Answer, JobId, OpenEnum, Time


class Fire(Answer, kw_only=True, frozen=True):
    """The outcome of a time at which a schedule was due."""

    due: Annotated[str, Meta(examples=["2026-11-21T09:30:00Z"])]
    """RFC 3339, UTC."""
    outcome: OpenEnum[Literal["started", "skipped", "missed", "manual"]]
    """`skipped`: an earlier job had not ended; `missed`: it was too late; `manual`: somebody asked for it."""
    at: Annotated[str, Meta(examples=["2026-11-21T09:30:00.412Z"])] = ""
    """Time when that was decided."""
    job_id: JobId | None = None
    """The job that was made."""
    passed_over: int = 0
    """Times before it for which nothing was done, up to 1,000."""
    why: str = ""
    """Why no job was made."""


class ScheduledJob(Answer, kw_only=True, frozen=True):
    """The job that a schedule makes."""

    name: str
    type: OpenEnum[Literal["parallel", "command", "pipeline"]]
    notes: list[str] = []
    """Fields of its document that have no effect here, or work differently than in Azure ML."""
    spec: dict[str, Any]
    """The spec of a job; the values of `environment_variables` are masked. What each job has for itself is a
    placeholder."""


class Schedule(Answer, kw_only=True, frozen=True):
    """A schedule, as it is now."""

    name: Annotated[str, Meta(examples=["nightly"])]
    owner: str = ""
    """The person whose schedule it is, and whose its jobs are. Empty: whoever runs the server."""
    display_name: str = ""
    description: str = ""
    tags: dict[str, str] = {}
    enabled: bool = True
    trigger: Annotated[dict[str, Any], Meta(examples=[{"type": "cron", "expression": "30 2 * * *"}])] = {}
    due: Annotated[str, Meta(examples=["30 2 * * * (Europe/Berlin)"])] = ""
    """A line for people about when it is due."""
    missed_runs: OpenEnum[Literal["once", "skip"]] = "once"
    allow_overlap: bool = False
    created: Time = ""
    modified: Time = ""
    """Time when it was last defined, enabled or disabled."""
    revision: int = 0
    """Grows whenever it is."""
    next: list[str] = []
    """The times at which it is due next, up to five; none while it is disabled, or when it has ended."""
    last: Fire | None = None
    """The outcome of the last time."""
    job: ScheduledJob


class SchedulePage(Answer, kw_only=True, frozen=True):
    """Schedules, by name."""

    items: list[Schedule]
    next_page_token: str | None = None


class FirePage(Answer, kw_only=True, frozen=True):
    """The outcomes of the times at which a schedule was due, the latest first."""

    items: list[Fire]
    next_page_token: str | None = None
