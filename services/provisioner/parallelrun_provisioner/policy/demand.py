"""Demand: the number of nodes that the jobs of a compute ask for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from parallelrun_core.computes.launch import Shape
from parallelrun_core.names.computes import built_image_of
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState


@dataclass(frozen=True, kw_only=True)
class Need:
    """The need of one job for workers and nodes."""

    state: JobState
    progress: Progress
    instance_count: int | None
    workers_per_node: int | None
    """Workers of the job on a node at most; None: one for each slot."""
    shape: Shape = field(default_factory=Shape)
    job: str = ""
    """Its id."""


def nodes_for(need: Need, slots: int) -> int:
    """The nodes that a job has work for: no more than it asks for, and no more than its mini-batches can keep busy.

    Args:
        slots: of a node.
    """
    if need.state not in (JobState.QUEUED, JobState.PROCESSING):
        return 0
    per_node = min(slots, need.workers_per_node or slots)
    undecided = max(0, need.progress.scheduled - need.progress.decided)
    if need.state is JobState.QUEUED or not need.progress.listing_done:
        # More may be listed than is known so far, and a node takes its time to come.
        return max(need.instance_count or 1, -(-undecided // per_node) if need.instance_count is None else 0)
    busy = -(-undecided // per_node)
    return busy if need.instance_count is None else min(busy, need.instance_count)


def images_to_build(needs: Iterable[Need], slots: int) -> dict[str, list[str]]:
    """The images that must be built for jobs which have work for nodes of them, and these jobs."""
    jobs_by_image: dict[str, list[str]] = {}
    for need in needs:
        if built_image_of(need.shape.image) and nodes_for(need, slots):
            jobs_by_image.setdefault(need.shape.image, []).append(need.job)
    return jobs_by_image


def demand_of(needs: Iterable[Need], slots: int) -> dict[Shape, int]:
    """The nodes of each shape that jobs ask for, whatever their compute may have."""
    demand: dict[Shape, int] = {}
    for need in needs:
        count = nodes_for(need, slots)
        if count:
            demand[need.shape] = demand.get(need.shape, 0) + count
    return demand
