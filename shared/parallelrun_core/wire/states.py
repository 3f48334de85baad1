"""The life of a job: its states and the moves between them; and the states of a pipeline's steps, and of a node;
and the control that people have: whether a job is paused, and its priority.

    queued ──► processing ◄─► finalizing ──► completed
      │            │              │
      ├────────────┼──────────────┴────────► failed
      └────────────┴───────────────────────► canceled

Each move is one compare-and-set (`lua/transition.lua`), so of two racing callers one wins and the other gets an error.
A job can be canceled before `finalizing`, not from then on. Only its leader moves it from there back to `processing`:
when the disk has lost rows or decisions, which have to be made again. A job leaves a terminal state only when the user
resumes or retries it, which begins a new generation (`lua/reopen.lua`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, NamedTuple


class JobState(StrEnum):
    """The state of a job."""

    QUEUED = "queued"
    """Accepted and durable; no master leads it yet."""
    PROCESSING = "processing"
    """A master leads it: listing, publishing and running overlap."""
    FINALIZING = "finalizing"
    """All is decided; workers shut down and the output is put together."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def is_terminal(self) -> bool:
        return self in TERMINAL


TERMINAL = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELED})

ALLOWED_FROM: dict[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset(),
    JobState.PROCESSING: frozenset({JobState.QUEUED, JobState.FINALIZING}),
    JobState.FINALIZING: frozenset({JobState.PROCESSING}),
    JobState.COMPLETED: frozenset({JobState.FINALIZING}),
    JobState.FAILED: frozenset({JobState.QUEUED, JobState.PROCESSING, JobState.FINALIZING}),
    JobState.CANCELED: frozenset({JobState.QUEUED, JobState.PROCESSING}),
}
"""Target state → the states from which it may be entered."""


class StepState(StrEnum):
    """The state of a step of a pipeline."""

    WAITING = "waiting"
    """A step that it needs has not ended."""
    RUNNING = "running"
    """The step has a job, which has not ended."""
    COMPLETED = "completed"
    """Its job has, or it reuses the outputs of an earlier one."""
    FAILED = "failed"
    CANCELED = "canceled"
    SKIPPED = "skipped"
    """A condition says so, or a step that it needs has not completed."""

    @property
    def has_ended(self) -> bool:
        return self not in (StepState.WAITING, StepState.RUNNING)


class NodeState(StrEnum):
    """The state of a node."""

    READY = "ready"
    DISK_FULL = "disk_full"
    """The node leases nothing until there is room on its disk again."""
    DRAINING = "draining"
    """The node was asked to stop, and finishes what it runs."""
    LOST = "lost"
    """Its lease has run out. No node says this of itself."""

    @classmethod
    def _missing_(cls, value: object) -> NodeState:
        return cls.READY  # a state that only a later release knows; the node is alive


Priority = Literal["low", "normal", "high", "urgent"]
URGENT: Final = "urgent"
"""The priority that only admins give: such a job has a part of its own, beside those of all owners."""


class Orders(NamedTuple):
    """Orders of people about a job that has not ended."""

    is_paused: bool = False
    priority: str = ""
    """The priority that it was given since it was submitted; empty: none."""


NO_ORDERS: Final = Orders()
