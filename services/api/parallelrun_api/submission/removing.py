"""Archives, deletes and restores jobs: each is a small file in the job's folder (`core/retention/marks.py`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from parallelrun_core.errors import Conflict, NotFound, Unavailable
from parallelrun_core.folder.job_folder import JobFolder, job_folder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.ids import is_from
from parallelrun_core.layout import job_ids, retention_of
from parallelrun_core.retention.marks import Marks
from parallelrun_core.retention.measuring import Measured
from parallelrun_core.retention.policy import references_among, units_of
from parallelrun_core.retention.references import References
from parallelrun_core.service import telemetry
from parallelrun_core.store.registry import Registry

log = telemetry.logger()


class Removals:
    """Archives, deletes and restores jobs. Safe to share between threads."""

    def __init__(self, root: Path, registry: Registry) -> None:
        self._root = root
        self._registry = registry

    def archive(self, job_id: str) -> None:
        """Hide a job from lists. It stays, and whoever names it finds it.

        Raises:
            NotFound: there is no such job.
            Conflict: it is a step of a pipeline.
        """
        folder, _ = self._submitted(job_id)
        Marks(folder).archive(time.time())

    def restore(self, job_id: str) -> None:
        """Take back that a job was archived or deleted, with the jobs of its steps.

        Raises:
            NotFound: there is no such job any more.
            Conflict: it is a step of a pipeline.
        """
        folder, record = self._submitted(job_id)
        for each in (folder, *self._steps_of(record)):
            Marks(each).restore()
        log.info("job_restored", job_id=job_id)

    def delete(self, job_id: str) -> None:
        """Delete a job with its outputs, results and reports; of a pipeline, also the jobs of its steps. Again, it
        changes nothing.

        Raises:
            NotFound: there is no such job.
            Unavailable: it has just ended, and is being cleaned up.
            Conflict: it has not ended, is a step of a pipeline, or something refers to it.
            RedisError: Redis is away.
        """
        folder, record = self._submitted(job_id)
        members = [folder, *self._steps_of(record)]
        for each in members:
            if not each.has_ended:
                raise Conflict(f"Job {each.job_id} has not ended: cancel it first, with `job cancel`.")
            if self._registry.is_active(each.job_id):
                raise Unavailable(f"Job {each.job_id} has just ended, and is not cleared up yet. Try again soon.")
        if needed := self._needed_by(job_id):
            raise Conflict(f"Job {job_id} can't be deleted: {needed} refers to it.")
        for each in members:  # itself first: from then on a sweep removes the rest as well
            Marks(each).delete(time.time())
        log.info("job_deleted", job_id=job_id, jobs=len(members))

    def _submitted(self, job_id: str) -> tuple[JobFolder, JobRecord]:
        folder = job_folder(self._root, job_id)
        record = folder.record()
        if record.parent is not None:
            raise Conflict(
                f"Job {job_id} is the step {record.parent.step!r} of the pipeline {record.parent.job_id}: "
                "archive, delete or restore the pipeline."
            )
        return folder, record

    def _steps_of(self, record: JobRecord) -> Iterator[JobFolder]:
        if not record.is_pipeline:
            return
        for job_id in job_ids(self._root):
            if is_from(job_id, record.job_id):
                folder = JobFolder(self._root, job_id)
                try:
                    is_member = folder.record().outermost == record.job_id
                except NotFound:
                    continue
                if is_member:
                    yield folder

    def _needed_by(self, job_id: str) -> str:
        """Return what refers to a job; empty: nothing."""
        facts = Measured(self._root, retention_of(self._root)).facts()
        units = units_of(facts)
        if job_id in (needed := references_among(facts, units)):
            return needed[job_id]
        references = References(self._root)
        references.read_documents()
        members = units[job_id].members if job_id in units else (job_id,)
        return next((references.jobs[each] for each in members if each in references.jobs), "")
