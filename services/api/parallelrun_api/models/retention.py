"""Retention: the room that is taken, and what sweeps remove."""

from __future__ import annotations

from pydantic import Field

from parallelrun_api.models.answer import JOB_ID_EXAMPLE, TIME_EXAMPLE, Answer, Time


class JobUsage(Answer):
    """The room that a job takes, or a pipeline with its steps."""

    job: str = Field(examples=[JOB_ID_EXAMPLE])
    bytes: int
    jobs: int
    """Number of jobs: itself, and those of its steps."""
    ended: Time | None
    """Null: it has not ended."""


class RemovedKind(Answer):
    """Things of one kind that a sweep removes."""

    count: int
    bytes: int


class Sweep(Answer):
    """The outcome of a sweep, or of a plan for one."""

    at: Time = Field(examples=[TIME_EXAMPLE])
    removed: dict[str, RemovedKind]
    """By kind: jobs, parts, logs, snapshots, asset_files, asset_versions, steps, uploads, blobs."""
    jobs: list[str]
    """The jobs among them."""
    notices: dict[str, Time]
    """Jobs that a rule will remove, each with the time of that."""
    references: dict[str, str]
    """Jobs that would go, each with what refers to it."""
    problem: str
    """Why a limit can't be kept; empty: it can."""
    not_removed: int
    """Folders that are out of the way, and that the master can't remove: they have files of another user."""
    took_s: float
    is_applied: bool
    """False for a plan, which has changed nothing."""


class ClusterUsage(Answer):
    """The room that the root folder takes."""

    free_bytes: int
    total_bytes: int
    jobs: int
    """Number of jobs, those of steps included."""
    bytes: dict[str, int]
    """By kind: jobs, of which parts and logs; snapshots, asset_files, assets, steps, uploads, blobs."""
    largest: list[JobUsage]
    """The largest jobs, the largest first."""
    rules: dict[str, float]
    """The rules of retention that hold; 0 keeps everything. Empty: no master has started yet."""
    last_sweep: Sweep | None
