"""The answers about schedules: schemas of `docs/openapi.json`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from parallelrun_api.models.answer import Answer


class Fire(Answer):
    """The outcome of a time at which a schedule was due."""

    due: str = Field(examples=["2026-11-21T09:30:00Z"])
    """RFC 3339, UTC."""
    outcome: Literal["started", "skipped", "missed", "manual"]
    """`skipped`: an earlier job had not ended; `missed`: it was too late; `manual`: somebody asked for it."""
    at: str = Field(examples=["2026-11-21T09:30:00.412Z"])
    """Time when that was decided."""
    job_id: str | None = Field(default=None, examples=["job_01kav3x8n2h7q5m9c4t6"])
    """The job that was made."""
    passed_over: int = 0
    """Times before it for which nothing was done, up to 1,000."""
    why: str = ""
    """Why no job was made."""


class ScheduledJob(Answer):
    """The job that a schedule makes."""

    name: str
    type: Literal["parallel", "command", "pipeline"]
    notes: list[str] = Field(default=[])
    """Fields of its document that have no effect here, or work differently than in Azure ML."""
    spec: dict[str, Any]
    """The spec of a job; the values of `environment_variables` are masked. What each job has for itself is a
    placeholder."""


class Schedule(Answer):
    """A schedule, as it is now."""

    name: str = Field(examples=["nightly"])
    owner: str = ""
    """The person whose schedule it is, and whose its jobs are. Empty: whoever runs the server."""
    display_name: str = ""
    description: str = ""
    tags: dict[str, str] = Field(default={})
    enabled: bool
    trigger: dict[str, Any] = Field(examples=[{"type": "cron", "expression": "30 2 * * *"}])
    missed_runs: Literal["once", "skip"]
    allow_overlap: bool
    created: str = Field(examples=["2026-11-21T09:30:00.000Z"])
    modified: str = Field(examples=["2026-11-21T09:30:00.000Z"])
    """Time when it was last defined, enabled or disabled."""
    revision: int
    """Grows whenever it is."""
    next: list[str] = Field(default=[])
    """The times at which it is due next, up to five; none while it is disabled, or when it has ended."""
    last: Fire | None = None
    """The outcome of the last time."""
    job: ScheduledJob


class SchedulePage(Answer):
    """Schedules, by name."""

    items: list[Schedule]
    next_page_token: str | None = None


class FirePage(Answer):
    """The outcomes of the times at which a schedule was due, the latest first."""

    items: list[Fire]
    next_page_token: str | None = None
