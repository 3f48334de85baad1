"""The answers of the API: the schemas of `docs/openapi.json`, a module for each subject.

Progress and failures are those of `parallelrun_core`, field by field, which `tests/unit/api/test_openapi.py` checks: a
schema with descriptions can only be made from pydantic's models, which other services shall not need.
"""

from parallelrun_api.models.advice import (
    Advice,
    AdviceBasis,
    AdviceCurve,
    AdviceFinding,
    Change,
    CurvePoint,
)
from parallelrun_api.models.cluster import Datastore, DatastoreList, Health, RateLimit, RateLimitList
from parallelrun_api.models.computes import Compute, ComputeList, ComputeNode, ComputeStatus
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
    Pace,
    ParentStep,
    PipelineStep,
    Progress,
)
from parallelrun_api.models.log_lines import LogLine, LogLines
from parallelrun_api.models.mini_batches import MiniBatch, MiniBatchFailure, MiniBatchPage, MiniBatchTries, MiniBatchTry
from parallelrun_api.models.nodes import Finding, Node, NodeCheck, NodeCheckAsked, NodeGpu, NodeList, NodePressure
from parallelrun_api.models.people import NewToken, Token, TokenList, TokenRequest, UsageList, UsageOfWeek
from parallelrun_api.models.previews import DataPreview, InputPreview, PreviewColumn
from parallelrun_api.models.problems import Problem, ProblemEntry
from parallelrun_api.models.profiles import Profile, ProfileCall, ProfiledFunction, ProfiledWorker, ProfileTree
from parallelrun_api.models.reports import Metric, MetricPoint, MetricReport, StorageReport, StorageRequests
from parallelrun_api.models.retention import ClusterUsage, JobUsage, RemovedKind, Sweep
from parallelrun_api.models.session import Session, SignInCode
from parallelrun_api.models.settings import EffectiveSetting, EffectiveSettings
from parallelrun_api.models.stacks import (
    NodeStacks,
    StackFrame,
    StacksAsked,
    StacksReport,
    ThreadStack,
    WorkerStacks,
)
from parallelrun_api.models.tiles import (
    Compared,
    Comparison,
    Figures,
    KindOfError,
    KindsOfErrors,
    Lane,
    SettingOfTwo,
    SlowTry,
    Throughput,
    Tiles,
    Timeline,
    TrySpans,
)

__all__ = [
    "Advice",
    "AdviceBasis",
    "AdviceCurve",
    "AdviceFinding",
    "Change",
    "ClusterUsage",
    "Compared",
    "Comparison",
    "Compute",
    "ComputeList",
    "ComputeNode",
    "ComputeStatus",
    "CurvePoint",
    "DataPreview",
    "Datastore",
    "DatastoreList",
    "EffectiveSetting",
    "EffectiveSettings",
    "ErrorCount",
    "Failure",
    "Figures",
    "FileEntry",
    "FileList",
    "Finding",
    "Health",
    "InputPreview",
    "Job",
    "JobPage",
    "JobType",
    "JobUsage",
    "KindOfError",
    "KindsOfErrors",
    "Lane",
    "Links",
    "LogLine",
    "LogLines",
    "Metric",
    "MetricPoint",
    "MetricReport",
    "MiniBatch",
    "MiniBatchFailure",
    "MiniBatchPage",
    "MiniBatchTries",
    "MiniBatchTry",
    "NamedOutput",
    "NewToken",
    "Node",
    "NodeCheck",
    "NodeCheckAsked",
    "NodeGpu",
    "NodeList",
    "NodePressure",
    "NodeStacks",
    "OutputElsewhere",
    "OutputFile",
    "Pace",
    "ParentStep",
    "PipelineStep",
    "PreviewColumn",
    "Problem",
    "ProblemEntry",
    "Profile",
    "ProfileCall",
    "ProfileTree",
    "ProfiledFunction",
    "ProfiledWorker",
    "Progress",
    "RateLimit",
    "RateLimitList",
    "RemovedKind",
    "Session",
    "SettingOfTwo",
    "SignInCode",
    "SlowTry",
    "StackFrame",
    "StacksAsked",
    "StacksReport",
    "StorageReport",
    "StorageRequests",
    "Sweep",
    "ThreadStack",
    "Throughput",
    "Tiles",
    "Timeline",
    "Token",
    "TokenList",
    "TokenRequest",
    "TrySpans",
    "UsageList",
    "UsageOfWeek",
    "WorkerStacks",
]
