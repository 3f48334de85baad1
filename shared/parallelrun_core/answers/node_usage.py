"""Use of the resources of a job's nodes."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from parallelrun_core.answers.answer import Answer, Time


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
