"""Jobs as the API shows them: the folder is the truth, Redis has what is going on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_api.views.marked import with_marks
from parallelrun_api.views.pipelines import Pipelines
from parallelrun_api.views.presenters import job_of
from parallelrun_core.answers import jobs as answers
from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.folder.disk_floor import NO_FLOOR, DiskFloor
from parallelrun_core.folder.job_folder import JobFolder, job_folder
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.folder.tags import tags_of
from parallelrun_core.folder.unreadable import UNREADABLE, SkippedJobs
from parallelrun_core.ids import is_from
from parallelrun_core.layout import job_ids
from parallelrun_core.lru_cache import LruCache
from parallelrun_core.retention.marks import Marks, check_not_deleted
from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_core.store.registry import JobStatus, Registry
from parallelrun_core.wire.masking import masked_spec
from parallelrun_core.wire.states import JobState

_MOST_CHECKED: Final = 2000
"""Jobs that are checked for one page with a state: an answer must not take long because of jobs that it leaves out."""
_STEPS: Final = 100_000
"""Jobs that are known to be steps, so that lists of others pass them over at once."""
_ENDED: Final = 1000
"""Jobs that have ended, as lists show them."""


@dataclass(frozen=True, kw_only=True)
class JobFilter:
    state: JobState | None = None
    parent: str = ""
    """Only the steps of this pipeline."""
    has_steps: bool = False
    """True if the list also has the jobs that are steps of pipelines."""
    owner: str | None = None
    """Only jobs of this person; None: of everybody."""
    has_archived: bool = False
    """True if the list also has jobs that are archived."""

    def takes(self, parent: str, owner: str, state: str | None = None) -> bool:
        """Return whether a job is one of them, by the pipeline of which it is a step, if any, by its owner, and by its
        state, once known."""
        is_there = parent == self.parent if self.parent else not parent or self.has_steps
        return is_there and self.owner in (None, owner) and (state is None or self.state in (None, state))


class JobReader:
    """Reads jobs. Safe to share between threads."""

    def __init__(self, root: Path, registry: Registry, floor: DiskFloor = NO_FLOOR) -> None:
        self.root = root
        self._floor = floor
        self._registry = registry
        self._pipelines = Pipelines(root, registry)
        self._steps = LruCache[str](_STEPS)
        """From the id of a job that is a step to that of its pipeline."""
        self._ended = LruCache[tuple[JobStatus, answers.Job]](_ENDED)
        """As they were shown last, each with the status of that time: one that is reopened gets another."""
        self._names = LruCache[str](_STEPS)
        self._skipped = SkippedJobs(root)

    def folder(self, job_id: str) -> JobFolder:
        """The folder of a job whose id came from outside.

        Raises:
            NotFound: this can't be a job's id.
        """
        return job_folder(self.root, job_id)

    def get(self, job_id: str) -> answers.Job:
        """Return one job; a pipeline with its steps.

        Raises:
            NotFound: there is none, or it was deleted.
            NewerSchema, CorruptLog: its records can't be read.
            RedisError: it hasn't ended, and Redis is away.
        """
        folder = self.folder(job_id)
        check_not_deleted(folder)
        record = self._record(folder)
        status, result, away = self._standing(folder)
        if result is None and away is not None:
            raise away
        job = with_marks(folder, self._shown(record, status, result, is_redis_there=away is None))
        if result is None and (problem := self._floor.problem(folder.path)):
            note = f"It waits: {problem}. It goes on by itself when there is room."
            job = msgspec.structs.replace(job, notes=[*job.notes, note])
        return job

    def name_of(self, job_id: str) -> str:
        """Return the name of a job; empty if it has none, or nothing can be read of it."""
        name = self._names.get(job_id)
        if name is None:
            try:
                name = str(self.folder(job_id).record().spec.get("name") or "")
            except UNREADABLE:
                return ""
            self._names.put(job_id, name)
        return name

    def submitted(self, job_id: str, new: JobRecord | None = None) -> answers.Job:
        """A job that was just accepted, even while Redis is away.

        Args:
            new: what was submitted, if this is the first that anybody hears of the job.
        """
        if new is not None and not new.is_pipeline:
            return job_of(new, None, None)
        folder = self.folder(job_id)
        record = self._record(folder)
        status, result, away = self._standing(folder)
        return self._shown(record, status, result, is_redis_there=away is None)

    def _record(self, folder: JobFolder) -> JobRecord:
        submitted = self._pipelines.submitted(folder)
        return submitted.record if submitted is not None else folder.record()

    def _shown(
        self, record: JobRecord, status: JobStatus | None, result: JobResult | None, *, is_redis_there: bool
    ) -> answers.Job:
        if not record.is_pipeline:
            return job_of(record, status, result, queued_at=self.requeued_at(record.job_id, status, result))
        folder = self.folder(record.job_id)
        submitted = self._pipelines.submitted(folder) or self._pipelines.remember(record)
        job = job_of(record, status, result, mask=submitted.mask, spec=submitted.shown)
        steps, outputs = self._pipelines.steps(folder, submitted, is_redis_there=is_redis_there)
        return msgspec.structs.replace(job, steps=steps, outputs=outputs)

    def requeued_at(self, job_id: str, status: JobStatus | None, result: JobResult | None) -> float | None:
        """Return when a job was resumed or retried that waits since; None: it has not been, or waits no more."""
        if result is not None or status is None or status.state is not JobState.QUEUED or not status.generation:
            return None
        return self.folder(job_id).reopenings()[-1].at

    def _standing(self, folder: JobFolder) -> tuple[JobStatus | None, JobResult | None, Exception | None]:
        """Return what Redis knows, what is recorded, and why Redis can't be asked, if it can't."""
        # In this order: a job that ends between the two is then seen as ended.
        status, away = self._status(folder.job_id)
        return status, folder.result(), away

    def _status(self, job_id: str) -> tuple[JobStatus | None, Exception | None]:
        try:
            return self._registry.status(job_id), None
        except NotFound:
            return None, None
        except CONNECTION_ERRORS as error:
            return None, error

    def statuses(self, job_ids: Sequence[str] | None = None) -> tuple[dict[str, JobStatus], Exception | None]:
        """Return the statuses of these jobs, or of all active ones, in one round trip; and why Redis can't be asked,
        if it can't."""
        try:
            return self._registry.statuses(self._registry.active_jobs() if job_ids is None else job_ids), None
        except CONNECTION_ERRORS as error:
            return {}, error

    def ids(self) -> list[str]:
        """Every job, the newest first: by their folders, since Redis may have been wiped."""
        return job_ids(self.root)[::-1]

    def page(self, job_filter: JobFilter, *, before: str, limit: int) -> tuple[list[answers.Job], str | None]:
        """Jobs older than `before`, the newest first, and the last one that was checked if there may be more."""
        jobs: list[answers.Job] = []
        checked = 0
        last = ""
        ids = (
            each for each in self.ids() if not (before and each >= before) and not self._is_left_out(each, job_filter)
        )
        while some := list(islice(ids, min(limit, _MOST_CHECKED))):
            statuses, away = self.statuses(some)
            for job_id in some:
                if len(jobs) == limit or checked == _MOST_CHECKED:
                    return jobs, last
                checked += 1
                last = job_id
                if (job := self._if_wanted(job_id, job_filter, statuses.get(job_id), away)) is not None:
                    jobs.append(job)
        return jobs, None

    def _is_left_out(self, job_id: str, job_filter: JobFilter) -> bool:
        """Return whether a job is known not to be wanted, without reading anything."""
        if job_filter.parent:
            return not is_from(job_id, job_filter.parent) or self._steps.get(job_id) not in (None, job_filter.parent)
        return not job_filter.has_steps and self._steps.get(job_id) is not None

    def _if_wanted(
        self, job_id: str, job_filter: JobFilter, status: JobStatus | None, away: Exception | None
    ) -> answers.Job | None:
        folder = self.folder(job_id)
        cached = self._ended.get(job_id)
        try:
            marks = Marks(folder)
            if marks.is_deleted or ((is_archived := marks.is_archived) and not job_filter.has_archived):
                return None
            if cached is not None and cached[0] is status and folder.has_record:
                job = msgspec.structs.replace(cached[1], archived=is_archived)
                is_taken = job_filter.takes(job.parent.job if job.parent else "", job.owner, job.state)
                return _tagged(folder, job) if is_taken else None
            listed = self._listed(folder, job_filter, status, away)
            return _tagged(folder, listed) if listed is not None else None
        except NotFound:
            return None  # it is being created or deleted
        except (NewerSchema, CorruptLog, OSError) as error:  # a disk that fails for one job fails no list
            self._skipped.report(job_id, error)
            return None

    def _listed(
        self, folder: JobFolder, job_filter: JobFilter, status: JobStatus | None, away: Exception | None
    ) -> answers.Job | None:
        record = self._record(folder)
        parent = record.parent.job_id if record.parent is not None else ""
        if parent:
            self._steps.put(folder.job_id, parent)
        if not job_filter.takes(parent, record.owner):
            return None
        result = folder.result()  # after the status: a job that ends between the two is then seen as ended
        if result is None and away is not None:
            raise away
        spec = {name: value for name, value in record.spec.items() if name != "steps"}
        job = job_of(
            record,
            status,
            result,
            spec=masked_spec(spec) if record.is_pipeline else None,
            queued_at=self.requeued_at(folder.job_id, status, result),
        )
        if job_filter.has_archived and Marks(folder).is_archived:
            return (
                msgspec.structs.replace(job, archived=True)
                if job_filter.takes(parent, record.owner, job.state)
                else None
            )
        if result is not None and status is not None and status.state.is_terminal:
            self._ended.put(folder.job_id, (status, job))
        return job if job_filter.takes(parent, record.owner, job.state) else None

    def has_ended(self, job_id: str) -> bool:
        """Return whether the job's result is recorded: nothing about it will change, unless it is reopened."""
        return self.folder(job_id).has_ended


def _tagged(folder: JobFolder, job: answers.Job) -> answers.Job:
    return msgspec.structs.replace(job, tags=tags_of(folder, job.spec))
