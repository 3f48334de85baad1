"""What the jobs of a node share."""

from __future__ import annotations

from dataclasses import dataclass

from parallelrun_agent.loop import EventLoop
from parallelrun_agent.staging.place import StagePlace
from parallelrun_agent.workers.gpus import GpuPool
from parallelrun_agent.workers.orphans import Orphans


@dataclass(frozen=True, slots=True)
class NodeContext:
    """The agent's event loop, the orphans of its workers, its GPUs, and where it stages."""

    loop: EventLoop
    orphans: Orphans
    gpus: GpuPool
    stage: StagePlace
