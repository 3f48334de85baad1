"""Why jobs and mini-batches wait."""

from __future__ import annotations

import msgspec


class Waiting(msgspec.Struct, kw_only=True, frozen=True):
    """The first thing that keeps a job from running."""

    condition: str = ""
    """The name of the condition that isn't met, as in an `Explanation`."""
    text: str = ""
    advice: str = ""
    """Advice in words; empty: it passes by itself."""
    left_s: float | None = None
    """Seconds until it is expected to pass; None: nobody knows."""


class RunCondition(msgspec.Struct, kw_only=True, frozen=True):
    """A condition for running, and its state."""

    name: str
    state: str
    """`met`; `waits`: it passes by itself; `blocks`: somebody has to do something."""
    text: str = ""
    advice: str = ""
    left_s: float | None = None


class Explanation(msgspec.Struct, kw_only=True, frozen=True):
    """Why a job, or one of its mini-batches, runs or doesn't."""

    job: str
    mini_batch: int | None = None
    runs: bool = False
    answer: str = ""
    """The answer in one sentence."""
    advice: str = ""
    """Advice in words; empty: nothing has to be done."""
    conditions: list[RunCondition] = []
    """All that have been checked, in the order in which they must be met."""
