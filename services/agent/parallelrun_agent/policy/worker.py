"""One worker as the policy sees it: what it has in flight, and where it is in its life. Pure bookkeeping, no I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from parallelrun_agent.policy.in_flight import InFlight

NEVER = float("inf")

KillReason = Literal[
    "",
    "confused",
    "disk_full",
    "distrusted",
    "drained",
    "ended",
    "hung_in_init",
    "init_timeout",
    "load_timeout",
    "run_timeout",
    "shutdown_timeout",
]
"""Why we ended a worker; empty while we have not."""
NOBODYS_FAULT: Final[frozenset[KillReason]] = frozenset({"drained", "disk_full", "distrusted"})
"""Reasons that have nothing to do with what runs in it."""


@dataclass(slots=True, eq=False)
class Worker:
    """What is known of a worker process. Times are monotonic."""

    process: str
    part_name: str
    """Name of the file that its rows go to; empty when none are kept."""
    started: float
    in_flight: InFlight = field(default_factory=InFlight)
    ready: bool = False
    """It is through init()."""
    has_answered: bool = False
    """It has answered for a mini-batch."""
    ending: bool = False
    """It gets nothing more."""
    replaced: bool = False
    """It gets nothing more, and is to end after what it runs: another one shall take its place."""
    kill_reason: KillReason = ""
    kill_at: float = NEVER
    """When it is to be killed: the end of its time for an orderly end, or for writing its stacks."""
    condemned_at: float = NEVER
    """When it was found hanging; what it has begun since then is not what it hung in."""
