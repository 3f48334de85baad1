"""A job's mini-batches, page by page: decided ones from the decision log, others from Redis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

from parallelrun_api.http.paging import decode_numbers, encode_token
from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.answers.mini_batches import MiniBatch, MiniBatchFailure, MiniBatchPage
from parallelrun_core.folder.damage import FRAME, Damage
from parallelrun_core.folder.decisions import NAME
from parallelrun_core.folder.record_log import RecordReader
from parallelrun_core.folder.term_log import Span, file_of, spans
from parallelrun_core.store.job_views import JobViews
from parallelrun_core.wire.at_work import NodeWork, TryAtWork
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import Outcome, decode_list

Status = Literal["done", "failed", "running", "ready"]
Order = Literal["decided", "id", "slowest"]

_MAX_LOOKED_AT: Final = 100_000
"""Decisions that one page looks at; rare ones in a long log then come on several, partly empty pages."""


class Position(NamedTuple):
    """The beginning of a page in the decision log: a record, and how many of its outcomes to skip."""

    term: int
    offset: int
    skip: int


@dataclass(frozen=True, kw_only=True)
class Page:
    limit: int
    token: str


@dataclass(frozen=True, kw_only=True)
class MiniBatchOrder:
    """Some of the decided mini-batches, and in what order they are listed. An empty text leaves none out."""

    order_by: Literal["id", "slowest"]
    first: int
    end: int | None
    """Exclusively; None: all that follow."""
    node: str = ""
    process: str = ""
    category: str = ""
    """Only those that failed with an error of this category."""
    input_name: str = ""
    """Only those with this in the name of one of their files; needs the order by id."""
    has_inputs: bool = False
    """True if each is listed with its first input."""


def decided(folder: Path, mask: Mask, status: Literal["done", "failed"] | None, page: Page) -> MiniBatchPage:
    """Mini-batches that have a decision, in the order of the decisions.

    The log is read from where the previous page ended. A leader records no mini-batch of a generation twice, so earlier
    decisions need not be known.

    Raises:
        InvalidInput: the token is not one of this list.
        CorruptLog: the log can't be read.
    """
    start = Position(*decode_numbers(page.token, "decided", 3)) if page.token else Position(0, 0, 0)
    items: list[MiniBatch] = []
    for looked_at, (position, outcome) in enumerate(_outcomes(folder, start)):
        if len(items) == page.limit or looked_at == _MAX_LOOKED_AT:
            return MiniBatchPage(items=items, next_page_token=encode_token("decided", *position))
        if status in (None, outcome.status) and outcome.status != "lost":
            items.append(mini_batch_of(outcome, mask))
    return MiniBatchPage(items=items)


def _outcomes(folder: Path, start: Position) -> Iterator[tuple[Position, Outcome]]:
    for span in spans(folder, NAME, on_damage=_pass_over):
        if span.term < start.term:
            continue
        is_first = span.term == start.term
        at, skip = (start.offset, start.skip) if is_first else (span.start, 0)
        for offset, payload in _records(folder, span, at):
            for index, outcome in enumerate(decode_list(payload)):
                if index >= skip:
                    yield Position(span.term, offset, index), outcome
            skip = 0


def _records(folder: Path, span: Span, at: int) -> Iterator[tuple[int, bytes]]:
    """`(offset, payload)` of each record from `at` on."""
    log = file_of(folder, NAME, span.term)
    with closing(RecordReader(log, start=at, end=span.end, on_damage=_pass_over)) as reader:
        while (payload := reader.read()) is not None:
            yield reader.at - FRAME.size - len(payload), payload


def _pass_over(_: Damage) -> None:
    """The leader says what is damaged."""


def running(views: JobViews, job_id: str, page: Page) -> MiniBatchPage:
    """Mini-batches that an agent holds, by id."""
    after = decode_numbers(page.token, "running", 1)[0] if page.token else -1
    nodes, begun = views.running(job_id), begun_tries(views.at_work(job_id))
    ids = sorted(mini_batch for mini_batch in nodes if mini_batch > after)
    items = [_running(each, nodes[each], begun.get(each)) for each in ids[: page.limit]]
    return MiniBatchPage(
        items=items, next_page_token=encode_token("running", items[-1].id) if len(ids) > page.limit else None
    )


class BegunTry(NamedTuple):
    node: str
    process: str
    at: TryAtWork


def begun_tries(at_work: Mapping[str, NodeWork]) -> dict[int, BegunTry]:
    """Return the tries that are under way, by their mini-batches; of several, the one that began last."""
    begun = [
        BegunTry(node, worker.process, each)
        for node, report in at_work.items()
        for worker in report.workers
        for each in worker.tries
    ]
    return {each.at.mini_batch: each for each in sorted(begun, key=lambda each: each.at.began)}


def _running(mini_batch: int, node: str, begun: BegunTry | None) -> MiniBatch:
    if begun is None:
        return MiniBatch(id=mini_batch, status="running", node=node)
    return MiniBatch(
        id=mini_batch,
        status="running",
        node=begun.node,
        process=begun.process,
        tries=begun.at.number,
        items=begun.at.items or None,
        started=rfc3339(begun.at.began),
    )


def ready(views: JobViews, job_id: str, page: Page) -> MiniBatchPage:
    """Mini-batches that wait for an agent, the next one first."""
    first = decode_numbers(page.token, "ready", 1)[0] if page.token else 0
    ids = views.ready(job_id, first, page.limit + 1)
    items = [MiniBatch(id=mini_batch, status="ready") for mini_batch in ids[: page.limit]]
    return MiniBatchPage(
        items=items, next_page_token=encode_token("ready", first + page.limit) if len(ids) > page.limit else None
    )


def mini_batch_of(outcome: Outcome, mask: Mask) -> MiniBatch:
    """Return what is shown of the end of a try."""
    failure, use = outcome.failure, outcome.use
    return MiniBatch(
        id=outcome.mini_batch,
        status="done" if outcome.status == "done" else "failed",
        tries=outcome.tries,
        node=outcome.node,
        process=outcome.process,
        items=outcome.items,
        rows=outcome.rows,
        failed_items=outcome.failed_items if outcome.items else None if outcome.failure else 0,
        started=rfc3339(outcome.started) if outcome.started else None,
        elapsed_s=outcome.elapsed_s,
        run_s=outcome.run_s,
        process_s=outcome.process_s if outcome.process_s >= 0 else None,
        peak_memory_bytes=use.peak_bytes or None,
        read_bytes=_known(use.read_bytes),
        minor_page_faults=_known(use.minor_faults),
        major_page_faults=_known(use.major_faults),
        voluntary_context_switches=_known(use.voluntary_switches),
        involuntary_context_switches=_known(use.involuntary_switches),
        failure=MiniBatchFailure(
            category=failure.category,
            message=mask.printable(failure.message),
            traceback=mask.printable(failure.traceback),
        )
        if failure
        else None,
    )


def _known(count: int) -> int | None:
    return count if count >= 0 else None
