"""Nodes, and the computes that they come from."""

from __future__ import annotations

from typing import Any

import msgspec


class Finding(msgspec.Struct, kw_only=True, frozen=True):
    """A finding of a node about itself."""

    level: str
    """ok; warn, if it could be better; bad, if it is to be mended."""
    what: str
    todo: str = ""


class NodeCheck(msgspec.Struct, kw_only=True, frozen=True):
    """A node's answer to a request to check itself."""

    id: str
    findings: list[Finding] = []


class NodePressure(msgspec.Struct, kw_only=True, frozen=True):
    """The part of the last minute, 0 to 1, in which something on a node waited for a resource (PSI)."""

    of: str
    """`cgroup`: in that of its agent, as in a container; `machine`: anywhere on it."""
    cpu: float = 0.0
    io: float = 0.0
    memory: float = 0.0


class NodeGpu(msgspec.Struct, kw_only=True, frozen=True):
    """A GPU of a node, or a part of one (MIG)."""

    device: str
    """The GPU's name as CUDA_VISIBLE_DEVICES has it."""
    name: str = ""
    utilization: float | None = None
    """The part of the time, 0 to 1, in which something ran on it lately."""
    memory_used_bytes: int | None = None
    memory_bytes: int | None = None


class Node(msgspec.Struct, kw_only=True, frozen=True):
    """A node of the cluster."""

    node: str
    state: str
    """ready; disk_full, while it waits for free space; draining, after it was asked to stop; lost."""
    slots: int = 0
    """Number of workers it can run at the same time."""
    busy: int = 0
    host: str = ""
    version: str = ""
    started: str | None = None
    jobs: list[str] = []
    """The jobs that it works for."""
    workers_apart: bool = False
    """True if user code runs as another user than the agent."""
    memory_bytes: int = 0
    """All that the node has; 0: a server of an earlier release doesn't say."""
    disk_free_bytes: int = 0
    """Free where its workers have their working folders."""
    clock_ahead_s: float = 0.0
    """Seconds that its clock is ahead of Redis'."""
    compute: str = ""
    """The compute that it belongs to; empty: none."""
    ends_at: str | None = None
    """Time when its engine is going to end it."""
    pressure: NodePressure | None = None
    """None: its kernel doesn't measure it."""
    gpus: list[NodeGpu] = []
    """The GPUs that workers get, if they can be measured there."""
    check: NodeCheck | None = None
    """Its answer to the last `check`, for a minute."""

    @property
    def is_alive(self) -> bool:
        return self.state != "lost"


class ComputeNode(msgspec.Struct, kw_only=True, frozen=True):
    """A node of a compute, as its provisioner sees it."""

    node: str
    stage: str
    """asked, pending, starting, ready, leaving, left or lost."""
    since: str = ""
    words: str = ""
    """The engine's own, on why it waits or has ended."""


class ComputeStatus(msgspec.Struct, kw_only=True, frozen=True):
    """The status of a compute, by the provisioner that acts."""

    at: str
    """Time when it said so."""
    wanted: int = 0
    """Nodes that its jobs can keep busy, within its limits."""
    ready: int = 0
    launching: int = 0
    """Asked for, and not there yet."""
    leaving: int = 0
    failures: int = 0
    """Launches that have failed in a row."""
    why: str = ""
    """The engine's message about the last failure."""
    next_attempt: str | None = None
    """Time when it is asked again."""
    nodes: list[ComputeNode] = []
    plan: str = ""
    """Exactly what is sent to the engine for a node."""
    plans: dict[str, str] = {}
    """The plans for nodes of images that jobs name, by the image."""


class Compute(msgspec.Struct, kw_only=True, frozen=True):
    """A named pool of like nodes."""

    name: str
    type: str
    """The kind: the engine that has its nodes."""
    min_instances: int = 0
    max_instances: int = 1
    is_default: bool = False
    """True if it runs the jobs that name no compute."""
    definition: dict[str, Any] = {}
    """The fields as they were defined, without those that are as by default."""
    status: ComputeStatus | None = None
    """None: no provisioner has said anything of it."""
