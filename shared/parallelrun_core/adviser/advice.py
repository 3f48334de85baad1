"""Advice about a job: its findings, each with what was measured, what a change would save, and the change."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from parallelrun_core.answers.answer import Answer, JobId, OpenEnum

Severity = Literal["low", "moderate", "severe", "critical"]
Saves = Literal["time", "cost", "risk"]
LEVELS: Final[tuple[Severity, ...]] = ("low", "moderate", "severe", "critical")


class Change(Answer, kw_only=True, frozen=True):
    """A change to make, in words and as settings."""

    text: str
    """The change in a sentence."""
    set: Annotated[dict[str, str], Meta(examples=[{"mini_batch_size": "40"}])] = {}
    """Fields of the job file with their new values, as for `--set`; none, if the change is elsewhere."""


class AdviceFinding(Answer, kw_only=True, frozen=True):
    """A thing that costs a job time or money, or endangers it."""

    id: Annotated[str, Meta(examples=["mini_batch_too_small"])]
    """The kind of finding: stable."""
    severity: OpenEnum[Severity]
    saves: OpenEnum[Saves]
    """`time`; `cost`: nodes that the job hardly needs; `risk`: the job, or some of its items, may fail."""
    title: str
    """The problem in a sentence."""
    evidence: list[str]
    """The measurements that show it."""
    change: Change
    guide: Annotated[str, Meta(examples=["docs/choosing-a-compute.md#nodes"])] = ""
    """The section of the documents that says how to choose what it is about; empty: there is none."""
    saving_s: float = 0.0
    """Seconds by which the job would have ended sooner with the change: predicted, as are the following two."""
    saving_share: float = 0.0
    """The saving as a share of the job's time."""
    predicted_s: float = 0.0
    """Seconds that the job would have taken with the change; 0: unknown."""
    saving_node_s: float = 0.0
    """Seconds of nodes, summed over all of them, that the change would save."""
    mini_batches: list[int] = []
    """Some that show it."""
    nodes: list[str] = []
    """The nodes that show it, if not all do."""


class AdviceBasis(Answer, kw_only=True, frozen=True):
    """The tries and times that the advice rests on."""

    seconds: float
    """Seconds that the job took; of one that runs, up to the end of its last try."""
    mini_batches: int
    tries: int
    looked_at: int = 0
    """Number of tries that were looked at: of a huge job, a sample, so that the numbers above are about right."""
    nodes: int
    processes_per_node: int
    is_running: bool = False
    mini_batch_s: float = 0.0
    """The median of a mini-batch."""
    fixed_s: float = 0.0
    """Seconds that a mini-batch costs beside its items."""
    lower_bound_s: float = 0.0
    """No order of these mini-batches on these workers is faster. 0: not known, as a worker runs several at once; so is
    the next."""
    unexplained_s: float = 0.0
    """By how much the replay of what happened is too short."""


class Advice(Answer, kw_only=True, frozen=True):
    """Advice on how a job would be faster, cheaper or safer."""

    job_id: JobId
    summary: str
    """The advice in a sentence."""
    basis: AdviceBasis | None = None
    """None: no try has ended yet."""
    findings: list[AdviceFinding] = []
    """The findings: what endangers the job comes first, then what saves most. None: nothing that is known is worth a
    change."""
    min_saving_s: float
    """Findings that save less time than this, or a smaller share than the next, are left out."""
    min_saving_share: float


class CurvePoint(Answer, kw_only=True, frozen=True):
    """A value of a setting, and what it would give."""

    value: int
    seconds: float
    node_hours: float
    cost: float | None = None
    """If a price was given."""


class AdviceCurve(Answer, kw_only=True, frozen=True):
    """Predicted times of a job for several values of one setting, computed from what was measured."""

    job_id: JobId
    setting: OpenEnum[Literal["nodes", "processes", "mini_batch_size"]]
    now: int
    """The value that it had."""
    seconds: float
    """Seconds that the job took."""
    points: list[CurvePoint]
    notes: list[str] = []
    """The assumptions of the prediction."""


class Thresholds(msgspec.Struct, kw_only=True, frozen=True):
    """The limits above which a finding is worth saying: what saves more than both, or endangers the job."""

    seconds: float = 60.0
    share: float = 0.10
