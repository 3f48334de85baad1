"""The server's answers as objects. Unknown fields are ignored."""

from __future__ import annotations

from parallelrun.models.definitions import Asset, BatchDeployment, BatchEndpoint, Datastore, Fire, Schedule
from parallelrun.models.jobs import (
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
from parallelrun.models.people import NewToken, Token
from parallelrun_core.wire.progress import Progress

__all__ = [
    "Asset",
    "BatchDeployment",
    "BatchEndpoint",
    "Compute",
    "ComputeNode",
    "ComputeStatus",
    "Datastore",
    "Failure",
    "Fire",
    "Job",
    "Metric",
    "MetricPoint",
    "MiniBatch",
    "NamedOutput",
    "NewToken",
    "Node",
    "OutputFile",
    "Progress",
    "RemoteFile",
    "Schedule",
    "Step",
    "StepOf",
    "Token",
]
