"""Why a job, or one of its mini-batches, doesn't run now."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from parallelrun_core.answers.answer import Answer, OpenEnum

RunConditionState = Literal["met", "waits", "blocks"]


class Waiting(Answer, kw_only=True, frozen=True):
    """The first thing that keeps a job from running."""

    condition: Annotated[str, Meta(examples=["slots"])] = ""
    """The name of the condition that isn't met, as in `GET /v1/jobs/{job_id}/explanation`."""
    text: Annotated[str, Meta(examples=["waiting behind job job_… (anna, 12 of 12 slots), about 4 min"])] = ""
    advice: str = ""
    """Advice in words; empty: it passes by itself."""
    left_s: float | None = None
    """Seconds until it is expected to pass; null: nobody knows."""
    needs_admin: bool = False
    """True if only an admin of the cluster can end it, as a pause by one."""


class RunCondition(Answer, kw_only=True, frozen=True):
    """A condition for running, and its state."""

    name: Annotated[str, Meta(examples=["slots"])]
    state: OpenEnum[RunConditionState]
    """`met`; `waits`: it passes by itself; `blocks`: somebody has to do something."""
    text: str = ""
    advice: str = ""
    """Advice in words; empty: nothing has to be done."""
    left_s: float | None = None
    """Seconds until it is expected to be met; null: nobody knows, or it is."""
    needs_admin: bool = False
    """True if only an admin of the cluster can change it, and the one who asks is none."""


class Explanation(Answer, kw_only=True, frozen=True):
    """Why a job, or one of its mini-batches, runs or doesn't."""

    job: str
    mini_batch: int | None = None
    """Null: the answer is about the job as a whole."""
    runs: bool = False
    """True if it runs now."""
    answer: str = ""
    """The answer in one sentence."""
    advice: str = ""
    """Advice in words; empty: nothing has to be done."""
    conditions: list[RunCondition] = []
    """All that have been checked, in the order in which they must be met. Those that depend on one which is not met may
    be left out."""
