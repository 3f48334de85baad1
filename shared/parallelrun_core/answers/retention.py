"""Retention: the room that is taken, and what sweeps remove."""

from __future__ import annotations

from parallelrun_core.answers.answer import Answer, JobId, Time

RuleValue = float
"""The value of a rule: days, bytes, or a number of things; 0 keeps everything."""


def rule_in_words(name: str, value: RuleValue) -> str:
    """Return a rule as people read it: like the setting, `keep_jobs_days=30`."""
    return f"keep_{name}={value:.15g}"


class JobUsage(Answer, kw_only=True, frozen=True):
    """The room that a job takes, or a pipeline with its steps."""

    job: JobId
    bytes: int
    jobs: int
    """Number of jobs: itself, and those of its steps."""
    ended: Time | None = None
    """Null: it has not ended."""


class RemovedKind(Answer, kw_only=True, frozen=True):
    """Things of one kind that a sweep removes."""

    count: int
    bytes: int


class Sweep(Answer, kw_only=True, frozen=True):
    """The outcome of a sweep, or of a plan for one."""

    at: Time
    removed: dict[str, RemovedKind] = {}
    """By kind: jobs, parts, logs, snapshots, asset_files, asset_versions, steps, uploads, blobs."""
    jobs: list[str] = []
    """The jobs among them."""
    notices: dict[str, Time] = {}
    """Jobs that a rule will remove, each with the time of that."""
    references: dict[str, str] = {}
    """Jobs that would go, each with what refers to it."""
    problem: str = ""
    """Why a limit can't be kept; empty: it can."""
    not_removed: int = 0
    """Folders that are out of the way, and that the master can't remove: they have files of another user."""
    took_s: float = 0.0
    is_applied: bool = True
    """False for a plan, which has changed nothing."""


class ClusterUsage(Answer, kw_only=True, frozen=True):
    """The room that the root folder takes."""

    free_bytes: int
    total_bytes: int
    jobs: int
    """Number of jobs, those of steps included."""
    bytes: dict[str, int] = {}
    """By kind: jobs, of which parts and logs; snapshots, asset_files, assets, steps, uploads, blobs."""
    largest: list[JobUsage] = []
    """The largest jobs, the largest first."""
    rules: dict[str, RuleValue] = {}
    """The rules of retention that hold; 0 keeps everything. Empty: no master has started yet."""
    last_sweep: Sweep | None = None
