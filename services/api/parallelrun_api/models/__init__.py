"""The answers of the API: the schemas of `docs/openapi.json`, a module for each subject.

Progress and failures are those of `parallelrun_core`, field by field, which `tests/unit/api/test_openapi.py` checks: a
schema with descriptions can only be made from pydantic's models, which other services shall not need.
"""

from parallelrun_api.models.cluster import Datastore, DatastoreList, Health
from parallelrun_api.models.files import FileEntry, FileList, OutputElsewhere
from parallelrun_api.models.jobs import (
    ErrorCount,
    Failure,
    Job,
    JobPage,
    JobType,
    Links,
    NamedOutput,
    OutputFile,
    ParentStep,
    PipelineStep,
    Progress,
)
from parallelrun_api.models.mini_batches import MiniBatch, MiniBatchFailure, MiniBatchPage
from parallelrun_api.models.nodes import Finding, Node, NodeCheck, NodeCheckAsked, NodeList, NodePressure
from parallelrun_api.models.problems import Problem, ProblemEntry
from parallelrun_api.models.reports import Metric, MetricPoint, MetricReport, StorageReport, StorageRequests
from parallelrun_api.models.stacks import (
    NodeStacks,
    StackFrame,
    StacksAsked,
    StacksReport,
    ThreadStack,
    WorkerStacks,
)

__all__ = [
    "Datastore",
    "DatastoreList",
    "ErrorCount",
    "Failure",
    "FileEntry",
    "FileList",
    "Finding",
    "Health",
    "Job",
    "JobPage",
    "JobType",
    "Links",
    "Metric",
    "MetricPoint",
    "MetricReport",
    "MiniBatch",
    "MiniBatchFailure",
    "MiniBatchPage",
    "NamedOutput",
    "Node",
    "NodeCheck",
    "NodeCheckAsked",
    "NodeList",
    "NodePressure",
    "NodeStacks",
    "OutputElsewhere",
    "OutputFile",
    "ParentStep",
    "PipelineStep",
    "Problem",
    "ProblemEntry",
    "Progress",
    "StackFrame",
    "StacksAsked",
    "StacksReport",
    "StorageReport",
    "StorageRequests",
    "ThreadStack",
    "WorkerStacks",
]
