"""Answers about advice: findings, and curves for other settings.

The fields are those of `parallelrun_core.adviser.advice`, which tests/unit/api/test_openapi.py checks.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from parallelrun_api.models.answer import JOB_ID_EXAMPLE, Answer


class Change(Answer):
    """A change to make, in words and as settings."""

    text: str
    """The change in a sentence."""
    set: dict[str, str] = Field(examples=[{"mini_batch_size": "40"}])
    """Fields of the job file with their new values, as for `--set`; none, if the change is elsewhere."""


class AdviceFinding(Answer):
    """A thing that costs a job time or money, or endangers it."""

    id: str = Field(examples=["mini_batch_too_small"])
    """The kind of finding: stable."""
    severity: Literal["low", "moderate", "severe", "critical"]
    saves: Literal["time", "cost", "risk"]
    """`time`; `cost`: nodes that the job hardly needs; `risk`: the job, or some of its items, may fail."""
    title: str
    """The problem in a sentence."""
    evidence: list[str]
    """The measurements that show it."""
    change: Change
    saving_s: float
    """Seconds by which the job would have ended sooner with the change: predicted, as are the following two."""
    saving_share: float
    """The saving as a share of the job's time."""
    predicted_s: float
    """Seconds that the job would have taken with the change; 0: unknown."""
    saving_node_s: float
    """Seconds of nodes, summed over all of them, that the change would save."""
    mini_batches: list[int]
    """Some that show it."""
    nodes: list[str]
    """The nodes that show it, if not all do."""


class AdviceBasis(Answer):
    """The tries and times that the advice rests on."""

    seconds: float
    """Seconds that the job took; of one that runs, up to the end of its last try."""
    mini_batches: int
    tries: int
    looked_at: int
    """Number of of the tries were looked at: of a huge job, a sample, so that the numbers above are about right."""
    nodes: int
    processes_per_node: int
    is_running: bool
    mini_batch_s: float
    """The median of a mini-batch."""
    fixed_s: float
    """Seconds that a mini-batch costs beside its items."""
    lower_bound_s: float
    """No order of these mini-batches on these workers is faster."""
    unexplained_s: float
    """By how much the replay of what happened is too short."""


class Advice(Answer):
    """Advice on how a job would be faster, cheaper or safer."""

    job_id: str = Field(examples=[JOB_ID_EXAMPLE])
    summary: str
    """The advice in a sentence."""
    basis: AdviceBasis | None = None
    """None: no try has ended yet."""
    findings: list[AdviceFinding]
    """The findings: what endangers the job comes first, then what saves most. None: nothing that is known is worth a
    change."""
    min_saving_s: float
    """Findings that save less time than this, or a smaller share than the next, are left out."""
    min_saving_share: float


class CurvePoint(Answer):
    """A value of a setting, and what it would give."""

    value: int
    seconds: float
    node_hours: float
    cost: float | None = None
    """If a price was given."""


class AdviceCurve(Answer):
    """Predicted times of a job for several values of one setting, computed from what was measured."""

    job_id: str = Field(examples=[JOB_ID_EXAMPLE])
    setting: Literal["nodes", "processes", "mini_batch_size"]
    now: int
    """The value that it had."""
    seconds: float
    """Seconds that the job took."""
    points: list[CurvePoint]
    notes: list[str]
    """The assumptions of the prediction."""
