"""The server's answers as objects. Unknown fields are ignored."""

from __future__ import annotations

from parallelrun.models.definitions import Asset, BatchDeployment, BatchEndpoint, Datastore, Fire, RateLimit, Schedule
from parallelrun.models.jobs import (
    FailedItem,
    Failure,
    Job,
    Metric,
    MetricPoint,
    MiniBatch,
    NamedOutput,
    OutputFile,
    RemoteFile,
    Step,
    StepOf,
)
from parallelrun.models.nodes import Compute, ComputeNode, ComputeStatus, Node
from parallelrun.models.people import NewToken, Quota, Token, UsageOfWeek
from parallelrun.models.retention import ClusterUsage, JobUsage, RemovedKind, Sweep
from parallelrun.models.waiting import Explanation, RunCondition, Waiting
from parallelrun_core.wire.progress import Progress

__all__ = [
    "Asset",
    "BatchDeployment",
    "BatchEndpoint",
    "ClusterUsage",
    "Compute",
    "ComputeNode",
    "ComputeStatus",
    "Datastore",
    "Explanation",
    "FailedItem",
    "Failure",
    "Fire",
    "Job",
    "JobUsage",
    "Metric",
    "MetricPoint",
    "MiniBatch",
    "NamedOutput",
    "NewToken",
    "Node",
    "OutputFile",
    "Progress",
    "Quota",
    "RateLimit",
    "RemoteFile",
    "RemovedKind",
    "RunCondition",
    "Schedule",
    "Step",
    "StepOf",
    "Sweep",
    "Token",
    "UsageOfWeek",
    "Waiting",
]
