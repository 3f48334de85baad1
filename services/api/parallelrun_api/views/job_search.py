"""Search among all jobs, however many there are: what never changes of a job is read once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from parallelrun_api.views.jobs import JobReader
from parallelrun_api.views.presenters import course_of, epoch, pace_of, type_of
from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.answers.job_summaries import JobCounts, JobMaker, JobSummary, JobSummaryPage
from parallelrun_core.answers.jobs import Job, JobType, ParentStep
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.folder.tags import tags_of
from parallelrun_core.folder.unreadable import UNREADABLE
from parallelrun_core.layout import jobs_of
from parallelrun_core.lru_cache import LruCache
from parallelrun_core.retention.marks import Marks
from parallelrun_core.store.registry import JobStatus
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.pace import Standing
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState

_RECORDS: Final = 100_000
_ENDED: Final = 20_000
_MADE_BY: Final = re.compile(r"made by the (?:(schedule)|deployment '[^']*' of the batch (endpoint)) '([^']*)'")
"""The note on a job that a schedule or an endpoint has made."""
_MOST_WHY: Final = 300

Order = Literal["submitted", "name", "state", "items", "pace", "time", "left"]


@dataclass(frozen=True, kw_only=True)
class JobQuery:
    """The jobs that somebody looks for, and their order."""

    text: str = ""
    """Words that all are in the name, id, type, tags, script, compute, owner or maker of a job."""
    state: JobState | None = None
    tag: str = ""
    """`name` or `name=value`."""
    compute: str = ""
    asset: str = ""
    """The name of an asset, as `azureml:rows:3`, that is among what the job reads or runs in."""
    maker: str = ""
    """`schedule`, `endpoint` or `pipeline`, or one of them, as `schedule:nightly`."""
    owner: str | None = None
    parent: str = ""
    has_steps: bool = False
    has_archived: bool = False
    since: float = float("-inf")
    until: float = float("inf")
    """Range of the time of submission, in seconds since the epoch."""
    order: Order = "submitted"
    is_ascending: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class _Card:
    """The facts of a job that change only with its folder."""

    job_id: str
    type: JobType
    name: str
    script: str
    tags: dict[str, str]
    assets: frozenset[str]
    compute: str
    owner: str
    parent: ParentStep | None
    maker: JobMaker | None
    submitted: float
    text: str

    def fits(self, query: JobQuery, words: list[str]) -> bool:
        """Return whether it is one of those that are looked for, whatever its state."""
        if self.parent is not None and not (query.has_steps or self.parent.job == query.parent):
            return False
        if query.parent and (self.parent is None or self.parent.job != query.parent):
            return False
        kind, _, name = query.maker.partition(":")
        tag, _, value = query.tag.partition("=")
        return (
            all(word in self.text for word in words)
            and (not kind or (self.maker is not None and self.maker.kind == kind and name in ("", self.maker.name)))
            and (not tag or (tag in self.tags and value in ("", self.tags[tag])))
            and query.compute in ("", self.compute)
            and (not query.asset or query.asset in self.assets)
            and query.owner in (None, self.owner)
            and query.since <= self.submitted <= query.until
        )


class JobSearch:
    """Finds jobs. Safe to share between threads."""

    def __init__(self, jobs: JobReader) -> None:
        self._jobs = jobs
        self._cards = LruCache[tuple[int, _Card]](_RECORDS)
        """Each with the time at which its folder was changed: other tags change that."""
        self._ended = LruCache[tuple[int, JobSummary]](_ENDED)
        """Those that have ended, each with the time at which its folder was changed: reopening it changes that."""

    def page(self, query: JobQuery, *, offset: int, limit: int) -> tuple[JobSummaryPage, int | None]:
        """The jobs from one position of the answer on, and the position of the next page; None: there is none.

        Raises:
            RedisError: a job has not ended, and Redis is away.
        """
        by_state: Counter[str] = Counter()
        matching: list[JobSummary] = []
        standings: Counter[str] = Counter()
        for summary in self._fitting(query):
            if summary.archived and not query.has_archived:
                continue
            by_state[summary.state] += 1
            standings[summary.pace.standing if summary.pace is not None else ""] += 1
            if query.state in (None, summary.state):
                matching.append(summary)
        if query.order != "submitted" or query.is_ascending:
            matching.sort(key=_RANKS[query.order], reverse=not query.is_ascending)
        items = [self._with_steps(each) for each in matching[offset : offset + limit]]
        following = offset + limit if offset + limit < len(matching) else None
        page = JobSummaryPage(
            items=items,
            total=len(matching),
            by_state=dict(by_state),
            waiting=standings[Standing.WAITING_FOR_WORKERS.value],
            paused=standings[Standing.PAUSED.value],
        )
        return page, following

    def _fitting(self, query: JobQuery) -> Iterator[JobSummary]:
        words = query.text.lower().split()
        statuses, away = self._jobs.statuses()
        for job_id in self._jobs.ids():
            try:
                changed, card = self._card(job_id)
                if not card.fits(query, words):
                    continue
                summary = self._summary(card, changed, statuses, away)
                if summary is not None:
                    yield summary
            except UNREADABLE:
                continue  # it is being created or deleted, or nobody can read it: the list says so in its log

    def _card(self, job_id: str) -> tuple[int, _Card]:
        """Return the facts of a job, and the time at which its folder was changed, in ns."""
        changed = (jobs_of(self._jobs.root) / job_id).stat().st_mtime_ns
        cached = self._cards.get(job_id)
        if cached is not None and cached[0] == changed:
            return cached
        folder = self._jobs.folder(job_id)
        record = folder.record()
        return self._cards.put(job_id, (changed, _card_of(record, tags_of(folder, record.spec))))

    def _summary(
        self, card: _Card, changed: int, statuses: dict[str, JobStatus], away: Exception | None
    ) -> JobSummary | None:
        """Return a job as it is now; None: somebody has deleted it."""
        status = statuses.get(card.job_id)
        cached = self._ended.get(card.job_id)
        if status is None and cached is not None and cached[0] == changed:
            return cached[1]
        folder = self._jobs.folder(card.job_id)
        marks = Marks(folder)
        if marks.is_deleted:
            return None
        result = folder.result()
        if result is None and away is not None:
            raise away
        reopened_at = self._jobs.requeued_at(card.job_id, status, result)
        summary = _summary_of(card, status, result, Mask(folder.record().spec), reopened_at)
        if marks.is_archived:
            summary = msgspec.structs.replace(summary, archived=True)
        if result is not None and status is None:
            self._ended.put(card.job_id, (changed, summary))
        return summary

    def _with_steps(self, summary: JobSummary) -> JobSummary:
        """A pipeline with counts of its steps in place of those of their mini-batches."""
        if summary.type != "pipeline":
            return summary
        return msgspec.structs.replace(summary, counts=_counts_of_steps(self._jobs.get(summary.id), summary.counts))


def _card_of(record: JobRecord, tags: dict[str, str]) -> _Card:
    spec = record.spec
    maker = _maker_of(record)
    parent = ParentStep(job=record.parent.job_id, step=record.parent.step) if record.parent is not None else None
    name, script = str(spec.get("name") or ""), str(spec.get("entry_script") or "")
    compute = str(spec.get("compute") or "")
    kind = type_of(record)
    parts = [name, record.job_id, kind, script, compute, record.owner, maker.name if maker else ""]
    parts += [f"{tag}={value}" if value else tag for tag, value in tags.items()]
    return _Card(
        job_id=record.job_id,
        type=kind,
        name=name,
        script=script,
        tags=tags,
        assets=frozenset(_assets_in(spec)),
        compute=compute,
        owner=record.owner,
        parent=parent,
        maker=maker,
        submitted=record.submitted,
        text=" ".join(parts).lower(),
    )


def _assets_in(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the assets in the spec of a job, or in those of a pipeline's steps."""
    for each in (spec.get("inputs") or {}).values():
        if isinstance(each, dict) and each.get("asset"):
            yield str(each["asset"])
    if isinstance(environment := spec.get("environment"), dict) and environment.get("name"):
        yield "azureml:" + str(environment["name"]).removeprefix("azureml:")
    for step in (spec.get("steps") or {}).values():
        if isinstance(step, dict):
            yield from _assets_in(step.get("job") or {})


def _maker_of(record: JobRecord) -> JobMaker | None:
    if record.parent is not None:
        return JobMaker(kind="pipeline", name=record.parent.job_id)
    for note in record.notes:
        if match := _MADE_BY.match(note):
            return JobMaker(kind="schedule" if match[1] else "endpoint", name=match[3])
    return None


def _summary_of(
    card: _Card, status: JobStatus | None, result: JobResult | None, mask: Mask, reopened_at: float | None
) -> JobSummary:
    state, failure, started, ended = course_of(result or status)
    progress = result.progress if result else status.progress if status else Progress()
    queued_at = card.submitted if reopened_at is None else reopened_at
    is_paused = status is not None and status.is_paused
    pace = pace_of(state, progress, queued_at=queued_at, started=started, ended=ended, is_paused=is_paused)
    return JobSummary(
        id=card.job_id,
        type=card.type,
        name=card.name,
        script=card.script,
        state=state,
        tags=card.tags,
        compute=card.compute,
        owner=card.owner,
        parent=card.parent,
        maker=card.maker,
        submitted=rfc3339(card.submitted),
        started=rfc3339(started) if started is not None else None,
        ended=rfc3339(ended) if ended is not None else None,
        counts=JobCounts(
            total=progress.scheduled,
            is_total_final=progress.listing_done or state.is_terminal,
            done=progress.done,
            failed=progress.failed,
            running=0 if state.is_terminal else progress.running,
            items=progress.items_decided,
            items_failed=progress.items_lost,
            rows=progress.rows,
        ),
        pace=None if card.type == "pipeline" else pace,
        archived=False,
        why=mask.printable(failure.summary)[:_MOST_WHY] if failure is not None else "",
    )


def _counts_of_steps(job: Job, counts: JobCounts) -> JobCounts:
    states = Counter(step.state for step in job.steps)
    return msgspec.structs.replace(
        counts,
        total=len(job.steps),
        is_total_final=True,
        done=states["completed"],
        failed=states["failed"] + states["canceled"],
        running=states["running"],
    )


def _took_s(summary: JobSummary) -> float:
    if summary.started and summary.ended:
        return epoch(summary.ended) - epoch(summary.started)
    return summary.pace.ran_s if summary.pace else 0.0


_RANKS: Final[dict[Order, Callable[[JobSummary], Any]]] = {
    "submitted": lambda each: each.id,
    "name": lambda each: (each.name or each.script).lower(),
    "state": lambda each: each.state,
    "items": lambda each: each.counts.items,
    "pace": lambda each: (each.pace and each.pace.items_per_s) or 0.0,
    "left": lambda each: (each.pace and each.pace.left_s) or 0.0,
    "time": _took_s,
}
"""Positions of a job in each order. Those of which nothing is known come last where the largest is first."""
