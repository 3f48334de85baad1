"""Nodes of the cluster, and what they find out about themselves."""

from __future__ import annotations

from typing import Literal

from parallelrun_api.models.answer import Answer, Time
from parallelrun_core.wire.states import NodeState


class Finding(Answer):
    """A finding of a node about itself."""

    level: Literal["ok", "warn", "bad"]
    what: str
    todo: str
    """The action to take; empty if nothing is to be done."""


class NodeCheck(Answer):
    """A node's answer to a request to check itself."""

    id: str
    """Id of the request."""
    findings: list[Finding]
    """Findings about what is not as it should be, and what of the paths of the request can be read there."""


class NodeCheckAsked(Answer):
    """All nodes were asked."""

    id: str
    """Nodes that have answered show a `check` with this id, after some seconds."""


class NodePressure(Answer):
    """The part of the last minute, 0 to 1, in which something waited for a resource, as the kernel tells it (PSI)."""

    of: str
    """`cgroup`: of all in the agent's cgroup, such as its container; `machine`: of the whole machine."""
    cpu: float
    io: float
    memory: float


class NodeGpu(Answer):
    """A GPU of a node, or a part of one (MIG)."""

    device: str
    """The GPU's name as CUDA_VISIBLE_DEVICES has it."""
    name: str
    """The model."""
    utilization: float | None
    """The part of the time, 0 to 1, in which something ran on it lately; null: unknown, as of parts."""
    memory_used_bytes: int | None
    memory_bytes: int | None


class NodeWork(Answer):
    """The work of a node for one job."""

    job: str
    name: str
    """The name of the job."""
    workers: int
    """Busy workers that it has for the job."""


class Node(Answer):
    """A node."""

    node: str
    host: str
    slots: int
    """Workers that it runs at the same time."""
    busy: int
    state: NodeState
    version: str
    started: Time
    jobs: list[str]
    """The jobs that it is ready to work for, with a worker or without."""
    work: list[NodeWork]
    """The jobs for which it has busy workers."""
    workers_apart: bool
    """True if user code runs as another user than the agent."""
    memory_bytes: int
    """All that the node has; 0: an agent of an earlier release doesn't say."""
    disk_free_bytes: int
    """Free where its workers have their working folders."""
    clock_ahead_s: float
    """Seconds that its clock is ahead of Redis'; negative: behind."""
    compute: str
    """The compute that it belongs to; empty: none."""
    ends_at: Time | None
    """Time when its engine is going to end it; null: not by itself."""
    pressure: NodePressure | None
    """The pressure on its resources, for which its processes wait; null if its kernel doesn't measure that."""
    gpus: list[NodeGpu]
    """The GPUs that workers get, with `nvidia-ml-py` installed there."""
    check: NodeCheck | None
    """Its answer to the last `:check`, for a minute."""


class NodeList(Answer):
    """All nodes, by name."""

    items: list[Node]
