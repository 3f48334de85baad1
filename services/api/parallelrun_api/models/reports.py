"""Answers about measurements of a job: requests to stores, and metrics."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from parallelrun_api.models.answer import Answer, Time


class StorageRequests(Answer):
    """The requests of one process to one object store by one operation, while it worked for a job."""

    node: str
    """A node; `master` lists, `concatenator` writes the output of rows."""
    store: str = Field(examples=["s3://bucket"])
    operation: Literal["list", "head", "get", "put", "upload", "copy", "delete"]
    """`upload`: to begin, complete or abort one in parts; each part is a `put`."""
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
    p50_ms: float
    p95_ms: float
    p99_ms: float
    mean_ms: float


class StorageReport(Answer):
    """The requests of a job to object stores, by process. Nothing was, if there are no items."""

    items: list[StorageRequests]


class MetricPoint(Answer):
    """A value of a metric."""

    time: Time
    """By the clock of the node."""
    value: Any
    step: int | None = None
    source: str
    """The node; of a pipeline, the step."""
    process: str


class Metric(Answer):
    """The values that the entry script has logged under one name."""

    name: str
    kind: Literal["metric", "param", "tag"] = "metric"
    """Params and tags are texts that the script has logged with MLflow."""
    count: int
    """Number of values."""
    points: list[MetricPoint]
    """The last 500 of them, in the order of their times."""


class MetricReport(Answer):
    """The metrics of a job by name, then its params and tags. None were logged, if there are no items."""

    items: list[Metric]
    left_out: int
    """Values that were too many, too long, or came too fast."""
