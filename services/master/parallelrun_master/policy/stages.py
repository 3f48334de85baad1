"""The stages of one leader's term, and which may follow which. Pure, no I/O.

    candidate ─────► turned away
        │
    recovering ────► starting, processing, finalizing, concluding or retiring: where the job is
        │
    starting ◄─┐                                 Redis may be set back, and the job with it:
        │      │                                 so each of these three may come again, or one before it
    processing ┤───► concluding, when the job has failed or was canceled
        │      │
    finalizing ┘
        │
    concluding
        │
    retiring ──────► retired

Each stage from `recovering` on may also be the last one: `resigned`, `set back`, `fenced` or `cut off`.

These are the stages of a process that leads, or wants to. The job has states of its own (`core/wire/states.py`), which
outlive it: a leader reads there what to do next.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Stage(StrEnum):
    """The stage of a leader's term, or how the term has ended."""

    CANDIDATE = "candidate"
    """The leader has read what was submitted, and no term is drawn."""
    RECOVERING = "recovering"
    """The leader leads, and reads what earlier terms have decided."""
    STARTING = "starting"
    """The job is queued."""
    PROCESSING = "processing"
    """The leader lists, publishes and records until all is decided, or somebody has ended the job."""
    FINALIZING = "finalizing"
    """Workers shut down, and the output is put together."""
    CONCLUDING = "concluding"
    """The end of the job is certain, and gets recorded."""
    RETIRING = "retiring"
    """The end is recorded: agents leave, and what only running needs is deleted."""

    TURNED_AWAY = "turned away"
    """Another process leads."""
    RETIRED = "retired"
    """The job needs no leader any more."""
    RESIGNED = "resigned"
    """Another process may lead at once."""
    SET_BACK = "set back"
    """The leader can't go on. Another process may lead after a pause, or the job has failed for it."""
    FENCED = "fenced"
    """Another term has begun, or the job is gone."""
    CUT_OFF = "cut off"
    """Redis is away in a stage that doesn't wait for it. Another process leads when the lease has run out."""


_EARLY_ENDS: Final = {Stage.RESIGNED, Stage.SET_BACK, Stage.FENCED, Stage.CUT_OFF}

FOLLOWS: Final[dict[Stage, set[Stage]]] = {
    Stage.CANDIDATE: {Stage.RECOVERING, Stage.TURNED_AWAY},
    Stage.RECOVERING: _EARLY_ENDS
    | {Stage.STARTING, Stage.PROCESSING, Stage.FINALIZING, Stage.CONCLUDING, Stage.RETIRING},
    Stage.STARTING: _EARLY_ENDS | {Stage.STARTING, Stage.PROCESSING, Stage.CONCLUDING},
    Stage.PROCESSING: _EARLY_ENDS | {Stage.STARTING, Stage.PROCESSING, Stage.FINALIZING, Stage.CONCLUDING},
    Stage.FINALIZING: _EARLY_ENDS | {Stage.STARTING, Stage.PROCESSING, Stage.FINALIZING, Stage.CONCLUDING},
    Stage.CONCLUDING: _EARLY_ENDS | {Stage.RETIRING},
    Stage.RETIRING: _EARLY_ENDS | {Stage.RETIRED},
}
"""Stage → the stages that may follow. The end of a term has none."""


class IllegalStage(RuntimeError):
    """This stage can't follow the present one: a bug."""


class TermStages:
    """The stage of one term; it begins as `candidate`."""

    def __init__(self) -> None:
        self.now = Stage.CANDIDATE

    def enter(self, stage: Stage) -> None:
        """Begin another stage.

        Raises:
            IllegalStage: it can't follow the present one, which remains.
        """
        if stage not in FOLLOWS.get(self.now, ()):
            raise IllegalStage(f"{stage!r} can't follow {self.now!r}")
        self.now = stage
