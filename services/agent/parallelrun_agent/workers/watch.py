"""What the jobs of a node share: the agent's loop, its orphans, its GPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from parallelrun_agent.workers.gpus import GpuPool
from parallelrun_agent.workers.orphans import Orphans


@dataclass(frozen=True, slots=True)
class Watch:
    """How a job asks the agent's loop to call it when a file descriptor is readable; and what all jobs share."""

    add: Callable[[int, Callable[[], None]], None]
    remove: Callable[[int], None]
    orphans: Orphans = field(default_factory=Orphans)
    gpus: GpuPool = field(default_factory=lambda: GpuPool([]))
