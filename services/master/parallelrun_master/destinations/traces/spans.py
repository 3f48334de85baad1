"""The spans of one job, from what its folder says of it: the same end gives the same spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from parallelrun_core.adviser.evidence import DONE, FAILED, RETRY, Evidence, Init
from parallelrun_core.adviser.reading.evidence import begun_at, evidence_of
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.wire.states import JobState
from parallelrun_master.policy.traced_tries import chosen

JOB: Final = ""
"""The key of the job's own span."""
_MINI_BATCHES: Final = "mini-batches"
_RESULTS: Final = {DONE: "done", FAILED: "failed", RETRY: "retried"}
_INITS: Final = 10
"""Of so many spans of mini-batches, one more may be that of an init()."""

Value = str | int | float


@dataclass(frozen=True, kw_only=True)
class TraceSpan:
    """A span. Times are seconds since the epoch."""

    name: str
    key: str
    """The key of the span among those of its job; its id follows from it."""
    parent: str = JOB
    """The key of the span that it is a part of."""
    begin: float
    end: float
    attributes: Mapping[str, Value] = field(default_factory=dict)
    error: str = ""
    """Why it has failed; empty: it hasn't."""


def job_span(record: JobRecord, result: JobResult, generation: int, begun: float) -> TraceSpan:
    """The span of the job itself.

    Args:
        begun: when it was submitted, or reopened.
    """
    progress, failure = result.progress, result.failure
    name = str(record.spec.get("name") or "")
    attributes: dict[str, Value] = {
        "parallelrun.job.id": record.job_id,
        "parallelrun.job.name": name,
        "parallelrun.job.type": str(record.spec.get("type") or ("pipeline" if record.is_pipeline else "parallel")),
        "parallelrun.job.state": str(result.state),
        "parallelrun.job.generation": generation,
        "parallelrun.mini_batches.done": progress.done,
        "parallelrun.mini_batches.failed": progress.failed,
        "parallelrun.mini_batches.retried": progress.retried,
        "parallelrun.items.done": progress.items_done,
        "parallelrun.items.failed": progress.items_failed,
        "parallelrun.rows": progress.rows,
    }
    if record.parent is not None:
        attributes |= {"parallelrun.pipeline.id": record.parent.job_id, "parallelrun.pipeline.step": record.parent.step}
    error = ""
    if result.state is JobState.FAILED:
        error = f"{failure.code}: {failure.summary}" if failure is not None else "failed"
        attributes["error.type"] = failure.code if failure is not None else "failed"
    label = record.parent.step if record.parent is not None else name
    title = f"job {label}" if label not in ("", "job") else "job"
    return TraceSpan(name=title, key=JOB, begin=begun, end=result.ended, attributes=attributes, error=error)


def spans_within(
    evidence: Evidence, result: JobResult, *, submitted: float, begun: float, most: int
) -> Iterator[TraceSpan]:
    """Return what the job did between.

    Args:
        submitted: when it was submitted, or reopened.
        begun: when a leader began with it; times of the evidence count from it.
        most: how many mini-batches may be among them.
    """
    if begun > submitted:
        yield TraceSpan(name="queued", key="queued", begin=submitted, end=begun)
    if (listed := evidence.first_listed_s) is not None:
        yield TraceSpan(name="list first mini-batch", key="listing", begin=begun, end=begun + listed)
    if evidence.environment_s:
        since = begun + (listed or 0.0)
        yield TraceSpan(name="build environment", key="environment", begin=since, end=since + evidence.environment_s)
    for init in _inits(evidence, most // _INITS):
        yield _of_init(init, begun)
    if not len(evidence.tries):
        return
    ends = evidence.tries.started_s + evidence.tries.elapsed_s
    first, last = begun + float(evidence.tries.started_s.min()), begun + float(ends.max())
    yield from _of_tries(evidence, begun, first, last, most)
    if result.state is JobState.COMPLETED and result.ended > last:
        yield TraceSpan(name="finish", key="finish", begin=last, end=result.ended)


def _inits(evidence: Evidence, most: int) -> list[Init]:
    """Return the init() calls of failed workers first, then those that took longest."""
    return sorted(evidence.inits, key=lambda init: (init.is_done, -init.seconds))[:most]


def _of_init(init: Init, begun: float) -> TraceSpan:
    begin = begun + init.started_s
    where: dict[str, Value] = {"parallelrun.node": init.node, "parallelrun.process": init.process}
    error = "" if init.is_done else "init() has failed"
    return TraceSpan(
        name="init", key=f"init/{init.node}/{init.process}/{begin:.6f}", begin=begin, end=begin + init.seconds,
        attributes=where if init.is_done else {**where, "error.type": "INIT"}, error=error,
    )  # fmt: skip


def _of_tries(evidence: Evidence, begun: float, first: float, last: float, most: int) -> Iterator[TraceSpan]:
    """The span of all of them together, and those of some tries in it."""
    places = chosen(evidence.tries, most)
    total = round(len(evidence.tries) * evidence.sample.each)
    counts: dict[str, Value] = {"parallelrun.tries": total, "parallelrun.tries.shown": len(places)}
    yield TraceSpan(name=_MINI_BATCHES, key=_MINI_BATCHES, begin=first, end=last, attributes=counts)
    tries = evidence.tries.where(places)
    for at in range(len(tries)):
        node, _, process = evidence.processes[int(tries.process[at])].rpartition("/")
        begin, error = begun + float(tries.started_s[at]), evidence.categories[int(tries.category[at])]
        number, status = int(tries.mini_batch[at]), int(tries.status[at])
        attributes: dict[str, Value] = {
            "parallelrun.mini_batch": number,
            "parallelrun.try.result": _RESULTS.get(status, ""),
            "parallelrun.node": node,
            "parallelrun.process": process,
            "parallelrun.items": int(tries.items[at]),
            "parallelrun.load_s": float(tries.load_s[at]),
            "parallelrun.run_s": float(tries.run_s[at]),
            "parallelrun.cpu_s": float(tries.cpu_s[at]),
        }
        if error:
            attributes["error.type"] = error
        yield TraceSpan(
            name="mini-batch",
            key=f"try/{number}/{node}/{process}/{begin:.6f}",
            parent=_MINI_BATCHES,
            begin=begin,
            end=begin + float(tries.elapsed_s[at]),
            attributes=attributes,
            error=error,
        )


def story_of(
    folder: JobFolder, record: JobRecord, result: JobResult, generation: int, most: int
) -> Iterator[TraceSpan]:
    """The spans of one generation of a job, its own one first.

    Of a pipeline, and of a generation after which the job was reopened before its trace was sent, there is only that
    one: what the folder says of tries is about the last generation.

    Raises:
        NotFound, NewerSchema, CorruptLog: its records can't be read.
    """
    submitted = max([record.submitted, *(each.at for each in folder.reopenings() if each.generation == generation)])
    root_span = job_span(record, result, generation, submitted)
    if record.is_pipeline or folder.generation() != generation:
        return iter([root_span])
    evidence, begun = evidence_of(folder, result), begun_at(folder, record, result)
    return chain([root_span], spans_within(evidence, result, submitted=submitted, begun=begun, most=most))
