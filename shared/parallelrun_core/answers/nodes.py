"""Nodes, as they say it themselves."""

from __future__ import annotations

from parallelrun_core.answers.answer import Answer, NodeStateText, Time
from parallelrun_core.answers.node_usage import NodeUsage, ResourceUsage
from parallelrun_core.wire.finding import Finding


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
