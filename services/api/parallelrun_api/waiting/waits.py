"""Answers about waiting: what a job waits for, and all conditions of a job or a mini-batch."""

from __future__ import annotations

import time
from typing import Final

import msgspec

from parallelrun_api.people.person import Person
from parallelrun_api.waiting.conditions import conditions_of, first_unmet
from parallelrun_api.waiting.mini_batch import conditions_of_one
from parallelrun_api.waiting.situation import Situation, SituationReader
from parallelrun_core.answers.waiting import Explanation, RunCondition, Waiting
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.lru_cache import LruCache
from parallelrun_core.store.registry import JobStatus
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.states import JobState

_REMEMBER_S: Final = 1.0
"""Many may watch one job: what bears on it is read once a second."""
_REMEMBERED: Final = 1000
_AFTER_ENDS: Final = {
    JobState.CANCELED: "`parallelrun job resume {0}` runs only what has no result yet",
    JobState.FAILED: "`parallelrun job show {0}` says why, and what to do about it",
}
AT_ONCE_S: Final = 2.0
"""A job that waits for less is just beginning: what it waits for is not worth a word."""


class Waits:
    """Answers about what jobs wait for. Safe to share between threads."""

    def __init__(self, reader: SituationReader) -> None:
        self._reader = reader
        self._read = LruCache[tuple[float, int, "Situation"]](_REMEMBERED)

    def of(self, folder: JobFolder, viewer: Person) -> Waiting | None:
        """Return what a job waits for, in words for the person who asks; None: it runs, has ended, or just begins.

        Raises:
            RedisError: Redis is away.
        """
        status = self._reader.standing(folder.job_id)
        if status is not None and not _can_wait(status):
            return None
        situation = self._situation(folder, status)
        began = situation.progress.queued_at or situation.record.submitted
        if situation.record.is_pipeline or situation.now - began < AT_ONCE_S:
            return None
        unmet = first_unmet(conditions_of(situation, viewer))
        if unmet is None:
            return None
        text = Mask(situation.record.spec).printable(unmet.text)
        return Waiting(
            condition=unmet.name, text=text, advice=unmet.advice, left_s=unmet.left_s, needs_admin=unmet.needs_admin
        )

    def explain(self, folder: JobFolder, viewer: Person) -> Explanation:
        """Return all conditions of a job.

        Raises:
            NotFound, NewerSchema, CorruptLog: there is no such job, or its records can't be read.
            RedisError: Redis is away.
        """
        if (result := folder.result()) is not None:
            advice = _AFTER_ENDS.get(result.state, "").format(folder.job_id)
            return _over(folder.job_id, f"it has ended: {result.state}", advice=advice)
        status = self._reader.standing(folder.job_id)
        situation = self._situation(folder, status)
        if situation.state in (JobState.FINALIZING, JobState.COMPLETED):
            return _over(
                folder.job_id, "all of its mini-batches are decided, and its output is put together", runs=True
            )
        return _explained(situation, conditions_of(situation, viewer), runs=bool(situation.progress.running))

    def explain_mini_batch(self, folder: JobFolder, mini_batch: int, viewer: Person) -> Explanation:
        """Return all conditions of a mini-batch that is not decided, first its own, then those of its job.

        Raises:
            NotFound, NewerSchema, CorruptLog, RedisError: as for `explain`.
        """
        explained = self.explain(folder, viewer)
        if not explained.conditions:
            return msgspec.structs.replace(explained, mini_batch=mini_batch)
        situation = self._situation(folder, self._reader.standing(folder.job_id))
        holding = self._reader.views.holding(folder.job_id, mini_batch)
        batch_conditions = conditions_of_one(situation, mini_batch, holding)
        is_held = bool(holding.node)
        conditions = batch_conditions if is_held else [*batch_conditions, *explained.conditions]
        answer = _explained(situation, conditions, runs=is_held)
        return msgspec.structs.replace(answer, mini_batch=mini_batch)

    def _situation(self, folder: JobFolder, status: JobStatus | None) -> Situation:
        now, version = time.monotonic(), status.version if status is not None else -1
        cached = self._read.get(folder.job_id)
        if cached is not None and now - cached[0] < _REMEMBER_S and cached[1] == version:
            return cached[2]
        return self._read.put(folder.job_id, (now, version, self._reader.read(folder, status)))[2]


def _can_wait(status: JobStatus) -> bool:
    return status.state is JobState.QUEUED or (status.state is JobState.PROCESSING and not status.progress.running)


def _over(job_id: str, text: str, *, runs: bool = False, advice: str = "") -> Explanation:
    return Explanation(job=job_id, runs=runs, answer=text, advice=advice, conditions=[])


def _explained(situation: Situation, conditions: list[RunCondition], *, runs: bool) -> Explanation:
    mask = Mask(situation.record.spec)
    masked_conditions = [msgspec.structs.replace(each, text=mask.printable(each.text)) for each in conditions]
    unmet = first_unmet(masked_conditions)
    if runs:
        answer, advice = "it runs", ""
        if unmet is not None and unmet.state == "blocks":
            answer, advice = f"it runs, but {unmet.text}", unmet.advice
    elif unmet is not None:
        answer, advice = unmet.text, unmet.advice
    else:
        answer, advice = "all conditions are met: it runs within a moment", ""
    return Explanation(job=situation.job_id, runs=runs, answer=answer, advice=advice, conditions=masked_conditions)
