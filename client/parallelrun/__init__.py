"""ParallelRun from Python and from the command line: submit, follow and fetch parallel jobs.

`Client` speaks to an API that is somewhere; `Cluster` starts everything on this machine. Names are loaded
when they are first used, so importing this package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parallelrun.client import Client
    from parallelrun.embedded.cluster import Cluster
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
    from parallelrun.models import Event, Failure, Job, MiniBatch, Node, Output, Progress, RemoteFile
    from parallelrun.transport import RetryPolicy

__all__ = [
    "ApiError",
    "Client",
    "Cluster",
    "ClusterFailed",
    "Conflict",
    "ConnectionFailed",
    "Event",
    "Failure",
    "InvalidInput",
    "InvalidRequest",
    "Job",
    "JobCanceled",
    "JobFailed",
    "MiniBatch",
    "Node",
    "NotFound",
    "Output",
    "ParallelRunError",
    "Problem",
    "Progress",
    "RemoteFile",
    "RetryPolicy",
    "TimedOut",
    "Unauthorized",
    "Unavailable",
]

_ELSEWHERE = {
    "Client": "client",
    "Cluster": "embedded.cluster",
    "Event": "models",
    "Failure": "models",
    "Job": "models",
    "MiniBatch": "models",
    "Node": "models",
    "Output": "models",
    "Progress": "models",
    "RemoteFile": "models",
    "RetryPolicy": "transport",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'errors')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
