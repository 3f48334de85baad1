"""A job in pictures: what its workers did in time, how fast it was, what failed in it, and what it was told to do."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from parallelrun.http.transport import Transport
from parallelrun.resources.resource import as_model, job_path

Model = TypeVar("Model")


class Tiles(msgspec.Struct, kw_only=True, frozen=True):
    """Mini-batches in buckets of neighbors: bucket `i` has those from `first + i * bucket_size` on. Each list has a
    value for each bucket."""

    first: int = 0
    end: int = 0
    bucket_size: int = 1
    total: int = 0
    waiting: list[int] = []
    running: list[int] = []
    completed: list[int] = []
    failed: list[int] = []
    retried: list[int] = []
    median_run_s: list[float | None] = []
    max_run_s: list[float | None] = []


class Lane(msgspec.Struct, kw_only=True, frozen=True):
    """A worker in time: the seconds of each bucket that it was in `init()`, loading, and running."""

    node: str
    process: str
    begin_s: float = 0
    end_s: float = 0
    tries: int = 0
    failed_tries: int = 0
    init: list[float] = []
    load: list[float] = []
    run: list[float] = []


class SlowTry(msgspec.Struct, kw_only=True, frozen=True):
    """A try that took long, and how many times as long as the median."""

    mini_batch: int
    node: str = ""
    process: str = ""
    begin_s: float = 0
    run_s: float = 0
    times_median: float = 0


class Timeline(msgspec.Struct, kw_only=True, frozen=True):
    """The workers of a job in time. All times are seconds since `start`."""

    start: str | None = None
    length_s: float = 0
    begin_s: float = 0
    end_s: float = 0
    bucket_s: float = 0
    lanes: list[Lane] = []
    lanes_total: int = 0
    slowest: list[SlowTry] = []
    median_run_s: float | None = None


class Throughput(msgspec.Struct, kw_only=True, frozen=True):
    """The work done in time: each list has a value for each bucket, from `start` on."""

    start: str | None = None
    bucket_s: float = 0
    mini_batches: list[int] = []
    items: list[int] = []
    failed: list[int] = []
    retried: list[int] = []
    busy_workers: list[float] = []


class KindOfError(msgspec.Struct, kw_only=True, frozen=True):
    """Tries that failed in the same way."""

    category: str
    place: str = ""
    """The line of the user's code; empty if there is none."""
    message: str = ""
    traceback: str = ""
    count: int = 0
    mini_batches: list[int] = []
    """The first ones."""
    node: str = ""
    process: str = ""
    log: str = ""


class KindsOfErrors(msgspec.Struct, kw_only=True, frozen=True):
    """Failures by kind, the most frequent first."""

    items: list[KindOfError] = []
    count: int = 0
    left_out: int = 0


class Figures(msgspec.Struct, kw_only=True, frozen=True):
    """Key figures of a job; None: not known, or not yet."""

    waited_s: float | None = None
    first_try_s: float | None = None
    took_s: float | None = None
    nodes: int = 0
    workers: int = 0
    mini_batches: int = 0
    failed_mini_batches: int = 0
    tries: int = 0
    failed_tries: int = 0
    items: int = 0
    rows: int = 0
    min_run_s: float | None = None
    median_run_s: float | None = None
    p95_run_s: float | None = None
    p99_run_s: float | None = None
    max_run_s: float | None = None
    run_s: float = 0
    load_s: float = 0
    overhead_s: float = 0
    init_s: float = 0
    wasted_s: float = 0
    busy_share: float | None = None
    items_per_s: float | None = None
    mini_batches_per_s: float | None = None


class Setting(msgspec.Struct, kw_only=True, frozen=True):
    """A setting of a job as it counts, and where it was given."""

    name: str
    value: Any = None
    default: Any = None
    origin: str = "unknown"
    """given, default or unknown."""
    given_at: str = ""
    description: str = ""
    group: str = "other"


class Settings(msgspec.Struct, kw_only=True, frozen=True):
    """All settings of a job."""

    items: list[Setting] = []


class Pictures:
    """Pictures of the jobs of a server. A server of an earlier release has none: then they raise NotFound.

    Every method raises Conflict for a pipeline: the jobs of its steps have pictures.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def tiles(self, job_id: str, *, buckets: int = 512) -> Tiles:
        """All mini-batches, in at most so many buckets."""
        return self._get(job_id, "tiles", Tiles, buckets=buckets)

    def timeline(
        self, job_id: str, *, begin_s: float = 0.0, end_s: float | None = None, buckets: int = 200, lanes: int = 50
    ) -> Timeline:
        """The first workers by node and process, in a window of time."""
        window = {"begin_s": begin_s} | ({} if end_s is None else {"end_s": end_s})
        return self._get(job_id, "timeline", Timeline, **window, buckets=buckets, limit=lanes)

    def throughput(self, job_id: str, *, points: int = 200) -> Throughput:
        """Return what was done, from the start until now."""
        return self._get(job_id, "throughput", Throughput, points=points)

    def errors(self, job_id: str) -> KindsOfErrors:
        """Return what has failed, by kind."""
        return self._get(job_id, "errors", KindsOfErrors)

    def figures(self, job_id: str) -> Figures:
        """Key figures."""
        return self._get(job_id, "figures", Figures)

    def settings(self, job_id: str) -> Settings:
        """Return what the job was told to do, with each setting's origin."""
        return self._get(job_id, "settings", Settings)

    def _get(self, job_id: str, name: str, model: type[Model], **params: float) -> Model:
        query = {key: str(value) for key, value in params.items()}
        return as_model(self._transport.request("GET", job_path(job_id, name), idempotent=True, params=query), model)
