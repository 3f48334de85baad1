"""The server's answers as objects, from `parallelrun_core.answers`. Unknown fields are ignored."""

from __future__ import annotations

from parallelrun_core.answers import jobs
from parallelrun_core.answers.assets import Asset
from parallelrun_core.answers.cluster import Datastore, RateLimit
from parallelrun_core.answers.computes import Compute, ComputeNode, ComputeStatus
from parallelrun_core.answers.endpoints import BatchDeployment, BatchEndpoint
from parallelrun_core.answers.files import FileEntry as RemoteFile
from parallelrun_core.answers.jobs import NamedOutput, OutputFile, Pace
from parallelrun_core.answers.jobs import ParentStep as StepOf
from parallelrun_core.answers.jobs import PipelineStep as Step
from parallelrun_core.answers.mini_batches import FailedItem, MiniBatch
from parallelrun_core.answers.nodes import Node
from parallelrun_core.answers.people import NewToken, Quota, Token, UsageOfWeek
from parallelrun_core.answers.reports import Metric, MetricPoint
from parallelrun_core.answers.retention import ClusterUsage, JobUsage, RemovedKind, Sweep
from parallelrun_core.answers.schedules import Fire, Schedule
from parallelrun_core.answers.waiting import Explanation, RunCondition, Waiting
from parallelrun_core.wire.failure import JobFailure as Failure
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
    "Pace",
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


class Job(jobs.Job, kw_only=True, frozen=True):
    """A job as it was when the server answered. Notebooks show it as a card."""

    def _repr_html_(self) -> str:
        """Return how it stands, for notebooks."""
        return self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return the card, with text for front ends that show no HTML."""
        from parallelrun.progress.widget import bundle_of  # here, since only notebooks need it

        return bundle_of(self)
