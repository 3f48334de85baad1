"""Nodes, as they say it themselves, and the use of their resources."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from parallelrun_core.answers.answer import Answer, NodeStateText, Time
from parallelrun_core.wire.finding import Finding


class UsageHistory(Answer, kw_only=True, frozen=True):
    """The last minutes or hours of a node: shares of what it has, 0 to 1, at the same times in each list."""

    at: list[Time]
    cpu: list[float | None]
    memory: list[float | None]


class ResourceUsage(Answer, kw_only=True, frozen=True):
    """Resources in use, and how much there is of them; null: it wasn't measured."""

    cpus: float | None
    """CPUs that are there; of a node with a limit, the limit."""
    cpu: float | None
    """The share of all CPUs that was busy, 0 to 1."""
    memory_used_bytes: int | None
    memory_bytes: int | None
    """All memory of the machine."""
    gpus: int
    gpu: float | None
    """The mean share of the time, 0 to 1, in which something ran on the GPUs."""
    gpu_memory_used_bytes: int | None
    gpu_memory_bytes: int | None
    disk_read_bytes_per_s: float | None
    disk_written_bytes_per_s: float | None
    network_received_bytes_per_s: float | None
    network_sent_bytes_per_s: float | None


class NodeUsage(ResourceUsage, kw_only=True, frozen=True):
    """Use of a node when it was measured last."""

    at: Time
    history: UsageHistory


class JobNodeUsage(NodeUsage, kw_only=True, frozen=True):
    """Use of a node when it was measured last while it worked for the job."""

    node: Annotated[str, Meta(examples=["node0"])]
    host: str
    """Name of its machine; empty: measured by an earlier release."""


class NodeUsageReport(Answer, kw_only=True, frozen=True):
    """Use of all nodes of a job, side by side and together."""

    items: list[JobNodeUsage]
    """Nodes by name; at most as many as `limit` says."""
    nodes_total: int
    """Nodes that have measured something."""
    total: ResourceUsage
    """Sums over the machines of the nodes that were measured in the last minute of all measurements."""
    nodes_in_total: int
    machines_in_total: int
    """Machines of those nodes: each counts once, however many nodes run on it."""


class NodeCheck(Answer, kw_only=True, frozen=True):
    """A node's answer to a request to check itself."""

    id: str
    """Id of the request."""
    findings: list[Finding] = []
    """Findings about what is not as it should be, and what of the paths of the request can be read there."""


class NodeCheckAsked(Answer, kw_only=True, frozen=True):
    """All nodes were asked."""

    id: str
    """Nodes that have answered show a `check` with this id, after some seconds."""


class NodePressure(Answer, kw_only=True, frozen=True):
    """The part of the last minute, 0 to 1, in which something waited for a resource, as the kernel tells it (PSI)."""

    of: str
    """`cgroup`: of all in the agent's cgroup, such as its container; `machine`: of the whole machine."""
    cpu: float = 0.0
    io: float = 0.0
    memory: float = 0.0


class NodeGpu(Answer, kw_only=True, frozen=True):
    """A GPU of a node, or a part of one (MIG)."""

    device: str
    """The GPU's name as CUDA_VISIBLE_DEVICES has it."""
    name: str = ""
    """The model."""
    utilization: float | None = None
    """The part of the time, 0 to 1, in which something ran on it lately; null: unknown, as of parts."""
    memory_used_bytes: int | None = None
    memory_bytes: int | None = None


class WorkForJob(Answer, kw_only=True, frozen=True):
    """The work of a node for one job."""

    job: str
    name: str
    """The name of the job."""
    workers: int
    """Busy workers that it has for the job."""
    owner: str = ""
    """The owner of the job; empty: whoever runs the server."""


class Node(Answer, kw_only=True, frozen=True):
    """A node."""

    node: str
    host: str = ""
    slots: int = 0
    """Workers that it runs at the same time."""
    busy: int = 0
    state: NodeStateText
    version: str = ""
    started: Time = ""
    jobs: list[str] = []
    """The jobs that it is ready to work for, with a worker or without."""
    work: list[WorkForJob] = []
    """The jobs for which it has busy workers."""
    workers_apart: bool = False
    """True if user code runs as another user than the agent."""
    memory_bytes: int = 0
    """All that the node has; 0: an agent of an earlier release doesn't say."""
    disk_free_bytes: int = 0
    """Free where its workers have their working folders."""
    clock_ahead_s: float = 0.0
    """Seconds that its clock is ahead of Redis'; negative: behind."""
    compute: str = ""
    """The compute that it belongs to; empty: none."""
    ends_at: Time | None = None
    """Time when its engine is going to end it; null: not by itself."""
    pressure: NodePressure | None = None
    """The pressure on its resources, for which its processes wait; null if its kernel doesn't measure that."""
    gpus: list[NodeGpu] = []
    """The GPUs that workers get, with `nvidia-ml-py` installed there."""
    usage: NodeUsage | None = None
    """The use of its resources, with the last half hour; null: an agent of an earlier release doesn't measure it."""
    check: NodeCheck | None = None
    """Its answer to the last `:check`, for a minute."""

    @property
    def is_alive(self) -> bool:
        return self.state != "lost"


class NodeList(Answer, kw_only=True, frozen=True):
    """All nodes, by name."""

    items: list[Node]
    total: ResourceUsage | None = None
    """The use of all hosts that were measured, each counted once; null: none was."""
