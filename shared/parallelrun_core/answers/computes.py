"""Computes: named pools of like nodes."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from parallelrun_core.answers.answer import Answer, Time


class ComputeNode(Answer, kw_only=True, frozen=True):
    """A node of a compute, as its provisioner sees it."""

    node: str
    stage: Annotated[str, Meta(examples=["pending"])]
    """asked for; pending, with the engine; starting, its agent has not come; ready; leaving; left; lost."""
    since: Time = ""
    words: str = ""
    """The engine's own, on why it waits or has ended."""


class ComputeStatus(Answer, kw_only=True, frozen=True):
    """The status of a compute, by the provisioner that acts."""

    at: Time
    """Time when it said so; the provisioner is away if that is more than a few seconds ago."""
    wanted: int = 0
    """Nodes that its jobs can keep busy, within its limits."""
    ready: int = 0
    launching: int = 0
    """Asked for, and not there yet."""
    leaving: int = 0
    failures: int = 0
    """Launches that have failed in a row."""
    why: str = ""
    """The engine's message about the last failure, or why it can't be asked; empty: nothing is wrong."""
    next_attempt: Time | None = None
    """Time when it is asked again; null: as soon as nodes are needed."""
    nodes: list[ComputeNode] = []
    """The first hundred that there are, in any stage."""
    plan: str = ""
    """Exactly what is sent to the engine for a node."""
    plans: dict[str, str] = {}
    """The plans by the image that a job has named: while such a job needs nodes, or such a node is there."""


class Compute(Answer, kw_only=True, frozen=True):
    """A named pool of like nodes."""

    name: Annotated[str, Meta(examples=["cpu-cluster"])]
    type: Annotated[str, Meta(examples=["docker"])]
    """The kind: the engine that has its nodes."""
    min_instances: int = 0
    max_instances: int = 1
    is_default: bool = False
    """True if it runs the jobs that name no compute."""
    definition: dict[str, Any] = {}
    """The fields as they were defined, without those that are as by default."""
    status: ComputeStatus | None = None
    """Null: no provisioner has said anything of it, as of one of kind `manual`."""
    cost_per_hour: float = 0.0
    """The cost of an hour of the nodes that it has now, by `--cost-per-slot-hour` and `--cost-per-gpu-hour`."""


class ComputeList(Answer, kw_only=True, frozen=True):
    """All computes."""

    items: list[Compute]
