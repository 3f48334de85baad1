"""Measurements of a job: requests to stores, and metrics."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from parallelrun_core.answers.answer import Answer, OpenEnum, Time


class StorageRequests(Answer, kw_only=True, frozen=True):
    """The requests of one process to one object store by one operation, while it worked for a job; or those of its node
    to the file system of a folder that the job reads."""

    node: str
    """A node; `master` lists, `concatenator` writes the output of rows."""
    store: Annotated[str, Meta(examples=["s3://bucket", "/data (nfs4)"])]
    operation: OpenEnum[
        Literal["list", "head", "get", "put", "upload", "copy", "delete", "read", "open", "lookup", "stat"]
    ]
    """`upload`: to begin, complete or abort one in parts; each part is a `put`. The last four are of file systems."""
    since: Time
    until: Time
    requests: int
    bytes: int
    failures: int
    """Calls that failed in the end."""
    throttled: int
    """Requests among them to which the store said that it has too much to do."""
    retries: int
    """Retries as far as they are known: see docs/logs.md."""
    p50_ms: float | None = None
    """Null for a file system, as in the next two."""
    p95_ms: float | None = None
    p99_ms: float | None = None
    mean_ms: float


class StorageReport(Answer, kw_only=True, frozen=True):
    """The requests of a job to object stores, and of its nodes to the file systems of its folders, by process."""

    items: list[StorageRequests]


class MetricPoint(Answer, kw_only=True, frozen=True):
    """A value of a metric."""

    time: Time
    """By the clock of the node."""
    value: Any = None
    step: int | None = None
    source: str = ""
    """The node; of a pipeline, the step."""
    process: str = ""


class Metric(Answer, kw_only=True, frozen=True):
    """The values that the entry script has logged under one name."""

    name: str
    kind: OpenEnum[Literal["metric", "param", "tag"]] = "metric"
    """Params and tags are texts that the script has logged with MLflow."""
    count: int = 0
    """Number of values."""
    points: list[MetricPoint] = []
    """The last 500 of them, in the order of their times."""


class MetricReport(Answer, kw_only=True, frozen=True):
    """The metrics of a job by name, then its params and tags. None were logged, if there are no items."""

    items: list[Metric]
    left_out: int
    """Values that were too many, too long, or came too fast."""
