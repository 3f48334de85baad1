"""Insight into jobs: what their mini-batches and workers do, why they wait, where time goes, what would be better."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

import msgspec

from parallelrun.http.transport import Transport
from parallelrun.models import Explanation, FailedItem, Metric, MiniBatch
from parallelrun.resources.resource import Resource, job_path
from parallelrun_core.adviser.advice import Advice, AdviceCurve
from parallelrun_core.answers.drafts import JobDocument
from parallelrun_core.answers.mini_batches import MiniBatchInputs
from parallelrun_core.answers.pictures import EffectiveSettings, Figures, KindsOfErrors, Throughput, Tiles, Timeline
from parallelrun_core.answers.profiles import Profile
from parallelrun_core.answers.remembered import RememberedAnswer
from parallelrun_core.answers.reports import StorageReport, StorageRequests
from parallelrun_core.answers.stacks import NodeStacks, StacksAsked

_PAGE: Final = 200
_POLL_S = 0.25


class Stacks(msgspec.Struct, kw_only=True, frozen=True):
    """The answers of a job's nodes."""

    nodes: list[NodeStacks]
    silent: list[str]
    """Nodes that have not answered in time."""


class JobInsight(Resource):
    """Answers about the jobs of a server; none of these calls changes one."""

    def __init__(self, transport: Transport, *, sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__(transport)
        self._sleep = sleep

    def mini_batches(self, job_id: str, *, status: str | None = None) -> Iterator[MiniBatch]:
        """The mini-batches of a job; pages are fetched as they are needed."""
        return self._all(job_path(job_id, "mini-batches"), MiniBatch, limit=_PAGE, status=status or None)

    def slowest(self, job_id: str, *, limit: int = 5) -> list[MiniBatch]:
        """Return the mini-batches whose `run()` took longest, the slowest first, each with its first input."""
        path = job_path(job_id, "mini-batches")
        return list(islice(self._all(path, MiniBatch, order_by="slowest", inputs=True, limit=limit), limit))

    def inputs_of(self, job_id: str, mini_batch: int) -> MiniBatchInputs:
        """Return the files, or the ranges of tables, that a mini-batch consists of: up to 1,000 of each.

        Raises:
            Conflict: the job is a pipeline, whose steps have mini-batches.
        """
        return self._ask("GET", job_path(job_id, f"mini-batches/{mini_batch}/inputs"), MiniBatchInputs)

    def document(self, job_id: str) -> JobDocument:
        """Return the settings that were given for a job, as YAML, to make another one like it.

        Raises:
            Conflict: the job is a pipeline, whose steps have documents.
        """
        return self._ask("GET", job_path(job_id, "document"), JobDocument)

    def explain(self, job_id: str, *, mini_batch: int | None = None) -> Explanation:
        """Return why a job, or one of its mini-batches, doesn't run now, and what to do.

        Raises:
            Conflict: a mini-batch of a pipeline.
        """
        return self._ask("GET", job_path(job_id, "explanation"), Explanation, mini_batch=mini_batch)

    def failed_items(self, job_id: str, *, mini_batch: int | None = None, category: str = "") -> Iterator[FailedItem]:
        """The items of a job that has ended which have failed for good; pages are fetched as they are needed.

        Args:
            mini_batch: only those of this mini-batch.
            category: only those that have failed like this, as in `RUN_EXCEPTION`.
        """
        path, only = job_path(job_id, "failed-items"), category or None
        return self._all(path, FailedItem, limit=_PAGE, mini_batch=mini_batch, category=only)

    def remembered(self, job_id: str, *, text: str = "") -> Iterator[RememberedAnswer]:
        """The answers that the script of a job has remembered so far; pages are fetched as they are needed.

        Args:
            text: only keys with this in them.

        Raises:
            Conflict: it is a pipeline, whose steps remember.
        """
        return self._all(job_path(job_id, "remembered"), RememberedAnswer, limit=_PAGE, text=text)

    def storage(self, job_id: str) -> list[StorageRequests]:
        """Return what a job has asked of object stores, and its nodes of its folders' file systems, by process."""
        return self._ask("GET", job_path(job_id, "storage"), StorageReport).items

    def metrics(self, job_id: str) -> Iterator[Metric]:
        """Return what the entry script has logged as metrics so far, by name."""
        return self._all(job_path(job_id, "metrics"), Metric)

    def advice(self, job_id: str, *, min_saving_s: float = 60) -> Advice:
        """Return what would make a job faster, cheaper or safer, and what to change; also of a job that runs.

        Args:
            min_saving_s: leave out what saves less time than this.

        Raises:
            Conflict: it is a pipeline.
        """
        return self._ask("GET", job_path(job_id, "advice"), Advice, min_saving_s=f"{min_saving_s:g}")

    def what_if(self, job_id: str, settings: str, *, price: float | None = None) -> AdviceCurve:
        """Return how long a job would have taken with other settings, computed from what was measured.

        Args:
            settings: such as `nodes=1..64`, `processes=2,4,8` or `mini_batch_size=10..1000`.
            price: of a node for an hour, in any currency.

        Raises:
            Conflict: no mini-batch has been tried yet, or it is a pipeline.
        """
        node_price = None if price is None else f"{price:g}"
        return self._ask("GET", job_path(job_id, "advice", "what-if"), AdviceCurve, what_if=settings, price=node_price)

    def profile(
        self, job_id: str, *, node: str = "", process: str = "", sort: str = "cumulative", limit: int = 100
    ) -> Profile:
        """The functions in which the workers of a job with a `profiling_module` have spent their time.

        Args:
            node, process: only those of this node, or workers of this name; empty: all of them.
            sort: what comes first: the most `cumulative` or `own` time, or `calls`.
            limit: how many functions, at most 1,000.
        """
        path = job_path(job_id, "profile")
        return self._ask("GET", path, Profile, node=node, process=process, sort=sort, limit=limit)

    def stacks(self, job_id: str, *, node: str = "", process: str = "", timeout_s: float = 20.0) -> Stacks:
        """Return the line in which each worker of a running job is, also one that hangs.

        Args:
            node, process: only those of this node, or this worker; empty: all of them.
            timeout_s: how long nodes are waited for.

        Raises:
            Conflict: no node works for it now, or it runs a command.
        """
        path = job_path(job_id)
        request = self._ask("POST", f"{path}:stacks", StacksAsked, {"node": node, "process": process})
        deadline = time.monotonic() + timeout_s
        while True:
            node_stacks = [each for each in self._all(f"{path}/stacks", NodeStacks) if each.id == request.id]
            silent = sorted(set(request.nodes) - {each.node for each in node_stacks})
            if not silent or time.monotonic() > deadline:
                return Stacks(nodes=node_stacks, silent=silent)
            self._sleep(_POLL_S)


class Pictures(Resource):
    """Pictures of the jobs of a server. A server of an earlier release has none: then they raise NotFound.

    Every method raises Conflict for a pipeline: the jobs of its steps have pictures.
    """

    def tiles(self, job_id: str, *, buckets: int = 512) -> Tiles:
        """All mini-batches, in at most so many buckets."""
        return self._ask("GET", job_path(job_id, "tiles"), Tiles, buckets=buckets)

    def timeline(
        self, job_id: str, *, begin_s: float = 0.0, end_s: float | None = None, buckets: int = 200, lanes: int = 50
    ) -> Timeline:
        """The first workers by node and process, in a window of time."""
        path = job_path(job_id, "timeline")
        return self._ask("GET", path, Timeline, begin_s=begin_s, end_s=end_s, buckets=buckets, limit=lanes)

    def throughput(self, job_id: str, *, points: int = 200) -> Throughput:
        """Return what was done, from the start until now."""
        return self._ask("GET", job_path(job_id, "throughput"), Throughput, points=points)

    def errors(self, job_id: str) -> KindsOfErrors:
        """Return what has failed, by kind."""
        return self._ask("GET", job_path(job_id, "errors"), KindsOfErrors)

    def figures(self, job_id: str) -> Figures:
        """Key figures."""
        return self._ask("GET", job_path(job_id, "figures"), Figures)

    def settings(self, job_id: str) -> EffectiveSettings:
        """Return what the job was told to do, with each setting's origin."""
        return self._ask("GET", job_path(job_id, "settings"), EffectiveSettings)
