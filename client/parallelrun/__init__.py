"""ParallelRun from Python and from the command line: submit, follow and fetch parallel jobs.

`run` runs one job on this machine, `Client` talks to the API of a cluster, and `Cluster` starts one on this machine.
`ParallelRunStep` and `parallel_run_function` describe jobs as Azure ML's SDKs do. `log_metric` is for entry scripts.
Names are loaded when they are first used, so importing this package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parallelrun.builders.loops import do_while, parallel_for
    from parallelrun.builders.output_dataset_config import OutputFileDatasetConfig
    from parallelrun.builders.parts import BuildContext, Environment, Input, Output
    from parallelrun.builders.step_data import PipelineData
    from parallelrun.builders.v1 import ParallelRunConfig, ParallelRunStep
    from parallelrun.builders.v1_inputs import PipelineParameter
    from parallelrun.builders.v1_pipeline import Pipeline, PythonScriptStep, StepSequence
    from parallelrun.builders.v2 import AssetTypes, InputOutputModes, RunFunction, parallel_run_function
    from parallelrun.client import Client
    from parallelrun.embedded.cluster import Cluster
    from parallelrun.embedded.local_run import RunResult
    from parallelrun.errors import (
        ApiError,
        ClusterFailed,
        Conflict,
        ConnectionFailed,
        InvalidInput,
        InvalidRequest,
        JobCanceled,
        JobFailed,
        NotFound,
        ParallelRunError,
        Problem,
        TimedOut,
        Unauthorized,
        Unavailable,
    )
    from parallelrun.http.transport import RetryPolicy
    from parallelrun.local import run
    from parallelrun.metrics import log_metric
    from parallelrun.models import (
        Asset,
        BatchDeployment,
        BatchEndpoint,
        Compute,
        Datastore,
        FailedItem,
        Failure,
        Fire,
        Job,
        Metric,
        MetricPoint,
        MiniBatch,
        NamedOutput,
        Node,
        OutputFile,
        Progress,
        RemoteFile,
        Schedule,
        Step,
    )
    from parallelrun.resources.events import Event

__all__ = [
    "ApiError",
    "Asset",
    "AssetTypes",
    "BatchDeployment",
    "BatchEndpoint",
    "BuildContext",
    "Client",
    "Cluster",
    "ClusterFailed",
    "Compute",
    "Conflict",
    "ConnectionFailed",
    "Datastore",
    "Environment",
    "Event",
    "FailedItem",
    "Failure",
    "Fire",
    "Input",
    "InputOutputModes",
    "InvalidInput",
    "InvalidRequest",
    "Job",
    "JobCanceled",
    "JobFailed",
    "Metric",
    "MetricPoint",
    "MiniBatch",
    "NamedOutput",
    "Node",
    "NotFound",
    "Output",
    "OutputFile",
    "OutputFileDatasetConfig",
    "ParallelRunConfig",
    "ParallelRunError",
    "ParallelRunStep",
    "Pipeline",
    "PipelineData",
    "PipelineParameter",
    "Problem",
    "Progress",
    "PythonScriptStep",
    "RemoteFile",
    "RetryPolicy",
    "RunFunction",
    "RunResult",
    "Schedule",
    "Step",
    "StepSequence",
    "TimedOut",
    "Unauthorized",
    "Unavailable",
    "do_while",
    "log_metric",
    "parallel_for",
    "parallel_run_function",
    "run",
]

_MODULES = {
    "Asset": "models",
    "AssetTypes": "builders.v2",
    "BatchDeployment": "models",
    "BatchEndpoint": "models",
    "BuildContext": "builders.parts",
    "Client": "client",
    "Cluster": "embedded.cluster",
    "Compute": "models",
    "Datastore": "models",
    "Environment": "builders.parts",
    "Event": "resources.events",
    "FailedItem": "models",
    "Failure": "models",
    "Fire": "models",
    "Input": "builders.parts",
    "InputOutputModes": "builders.v2",
    "Job": "models",
    "Metric": "models",
    "MetricPoint": "models",
    "MiniBatch": "models",
    "NamedOutput": "models",
    "Node": "models",
    "Output": "builders.parts",
    "OutputFile": "models",
    "OutputFileDatasetConfig": "builders.output_dataset_config",
    "ParallelRunConfig": "builders.v1",
    "ParallelRunStep": "builders.v1",
    "Pipeline": "builders.v1_pipeline",
    "PipelineData": "builders.step_data",
    "PipelineParameter": "builders.v1_steps",
    "Progress": "models",
    "PythonScriptStep": "builders.v1_pipeline",
    "RemoteFile": "models",
    "RetryPolicy": "http.transport",
    "RunFunction": "builders.v2",
    "RunResult": "embedded.local_run",
    "Schedule": "models",
    "Step": "models",
    "StepSequence": "builders.v1_pipeline",
    "do_while": "builders.loops",
    "log_metric": "metrics",
    "parallel_for": "builders.loops",
    "parallel_run_function": "builders.v2",
    "run": "local",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
