"""Accepts jobs. Until `job.json` is written nothing has happened; from then on the job is accepted and will run.

The order of the steps ensures that:

    1. all checks                       nothing is written
    2. snapshot of the code             beside the store; moved into it once all of it is good and on disk; of a
                                        pipeline, that of each step
    3. claim of the idempotency key     durable: from now on the key stands for this job; only if there is a key
       place in the quota               on Redis, for two minutes or until step 5: no other request can take it
    4. job folder with job.json         durable: this is the moment of acceptance; with `resume_from`, all that is taken
                                        over from the earlier job appears together with it
    5. Redis: the job, a call for a leader

When this process dies between 3 and 4, the next request with the key creates that very job. When Redis goes away
between 4 and 5, the answer is still "accepted", and step 5 is repeated until it succeeds (`registrar`). When this
process dies there, the next one finds a folder that Redis doesn't know and does the same.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from parallelrun_api.people.person import CURRENT, seen_places
from parallelrun_api.people.quotas import Quotas
from parallelrun_api.submission.build_contexts import with_context_stored
from parallelrun_api.submission.checks import PathChecks
from parallelrun_api.submission.code import code_is_whole, store_code, store_steps_code
from parallelrun_api.submission.key_claims import KeyClaims
from parallelrun_api.submission.notes import notes_on_size, true_notes
from parallelrun_api.submission.output_claims import check_output_is_free, check_outputs_are_free
from parallelrun_api.submission.step_problems import StepProblems
from parallelrun_api.submission.takeover import check_earlier_pipeline, earlier_job
from parallelrun_api.submission.upload import SubmittedForm
from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.computes.selection import Selection
from parallelrun_core.durable_files import sync_folder
from parallelrun_core.errors import Conflict, InvalidInput, NoRoom, NotFound
from parallelrun_core.folder.disk_floor import NO_FLOOR, DiskFloor
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.folder.takeover import take_over
from parallelrun_core.ids import new_job_id
from parallelrun_core.intake.launching import register
from parallelrun_core.intake.prepared import JOB_ID, job_of
from parallelrun_core.intake.reading import Reading
from parallelrun_core.service import failpoints, telemetry
from parallelrun_core.spec import JobSpec, PipelineSpec
from parallelrun_core.spec.pipeline_steps import leaf_steps, with_steps
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.store.connection import CONNECTION_ERRORS, Redis
from parallelrun_core.store.nodes import NodeRegistry
from parallelrun_core.store.registry import Registry
from parallelrun_core.tracing.context import SpanContext

log = telemetry.logger()


@dataclass(frozen=True)
class _Prepared:
    """A job that may be created."""

    spec: dict[str, Any]
    """The spec as it is recorded: of a pipeline, with the names of its steps' snapshots."""
    code: str
    """Name of the snapshot; of a pipeline, which has none of its own, empty."""
    earlier: JobFolder | None
    """The job from which it takes over."""


class Accepted(NamedTuple):
    """A job that is durable, and not known to Redis yet."""

    job_id: str
    new: JobRecord | None = None
    """The record, if the request has just created the job; None: anything may have become of the job since."""


class Submissions:
    """Accepts jobs. Safe to share between threads."""

    def __init__(
        self,
        root: Path,
        computes: ComputeCatalog,
        checks: PathChecks,
        redis: Redis,
        floor: DiskFloor = NO_FLOOR,
        *,
        quotas: Quotas | None = None,
    ) -> None:
        self._root = root
        self._floor = floor
        self._quotas = quotas
        self._checks = checks
        self._redis = redis
        self._registry = Registry(redis)
        self._nodes = NodeRegistry(redis)
        self._keys = KeyClaims(root)
        self._computes = computes

    def accept(self, upload: SubmittedForm, key: str, traceparent: str = "") -> Accepted:
        """Turn an upload into a job, durably. It is not yet registered.

        With an idempotency key, the same upload becomes the same job however often it comes.

        Args:
            traceparent: the span of whoever submits it, as the header has it; one that is none is passed over.

        Raises:
            InvalidInput, Conflict: it can't be accepted.
            KeyReused: the key was used for another upload.
            QuotaExceeded: the person has as many jobs as they may have.
            RedisError: Redis is away; nothing has happened.
        """
        now = self._registry.now()
        if not key:
            self._check_quota()
            folder = JobFolder(self._root, new_job_id())
            prepared = self._prepare(folder, upload)
            with self.reserved(folder.job_id, CURRENT.get().owner):
                return self._create(folder, upload, prepared, traceparent, is_alone=True)
        earlier_id = self._keys.job_of(key, upload.sha256, now=now)
        if earlier_id is not None and self._is_accepted(earlier_id):
            return Accepted(earlier_id)
        folder = JobFolder(self._root, earlier_id or new_job_id())
        self._check_quota()
        try:
            prepared = self._prepare(folder, upload)
        except (InvalidInput, Conflict):
            # Another server may have been faster, and what keeps this job out is that very job, or its output.
            earlier_id = self._keys.job_of(key, upload.sha256, now=now)
            if earlier_id is not None and self._is_accepted(earlier_id):
                return Accepted(earlier_id)
            raise
        claimed_id = self._keys.claim(key, upload.sha256, folder.job_id, now=now)
        failpoints.reach("key.claimed")
        if claimed_id != folder.job_id:
            if self._is_accepted(claimed_id):
                return Accepted(claimed_id)  # another server was faster
            folder = JobFolder(self._root, claimed_id)
        with self.reserved(claimed_id, CURRENT.get().owner):
            return self._create(folder, upload, prepared, traceparent, is_alone=False)

    def _check_quota(self) -> None:
        if self._quotas is not None:
            self._quotas.check()

    def reserved(self, job_id: str, owner: str) -> AbstractContextManager[None]:
        """Let a job that is created inside count for its owner's quota, until it is registered (`Quotas.reserved`).

        Raises:
            QuotaExceeded: they may have no more.
            RedisError: Redis is away.
        """
        return nullcontext() if self._quotas is None else self._quotas.reserved(job_id, owner)

    def prepare(self, upload: SubmittedForm) -> JobRecord:
        """Do for a job that is made later, maybe many times, all that comes before its creation; it has no id yet.

        Raises:
            InvalidInput, Conflict: it can't be accepted; nothing is left of it.
        """
        prepared = self._prepare(JobFolder(self._root, new_job_id()), upload)
        if upload.spec.resume_from:
            raise InvalidInput.at("/resume_from", "a job that is made later can't take over from another one")
        return self._record(upload, prepared)

    def check_inputs(self, spec: JobSpec) -> None:
        """Check the inputs of a job as `accept` does.

        Raises:
            InvalidInput: it can't have them.
        """
        self._checks.check_inputs(spec)

    def check(self, upload: SubmittedForm) -> list[str]:
        """Check a job as if it were submitted, but for its code; returns the notes on its document.

        Raises:
            InvalidInput, Conflict: it would not be accepted.
        """
        spec = upload.spec
        if isinstance(spec, PipelineSpec):
            problems = StepProblems(upload.reading)
            for step in leaf_steps(spec):
                with problems.of(step.names):
                    self._checks.check_step(step.checkable_spec(), has_zip=upload.code is not None)
            problems.check()
            return self.notes(upload.reading, spec.model_dump(mode="json"))
        with upload.reading.locating_problems():
            self._checks.check(spec, has_zip=upload.code is not None)
            check_output_is_free(JobFolder(self._root, new_job_id()), spec, self._registry)
            if spec.resume_from:
                earlier_job(self._root, spec, self._checks.rule())
            placed = Selection(self._computes).place(spec)
        return self.notes(upload.reading, spec.model_dump(mode="json") | dict(placed))

    def begin_day(self) -> None:
        """Prepare for idempotency keys, and remove those that need not be kept any longer.

        Raises:
            RedisError: Redis is away, whose clock it is that counts.
        """
        self._keys.begin_day(self._registry.now())

    def register(self, accepted: Accepted) -> None:
        """Make an accepted job known to Redis, unless it has gone on already.

        Raises:
            RedisError: Redis is away.
        """
        register(self._redis, JobFolder(self._root, accepted.job_id), new=accepted.new, registry=self._registry)
        if self._quotas is not None:
            self._quotas.confirm(accepted.job_id)

    def _is_accepted(self, job_id: str) -> bool:
        folder = JobFolder(self._root, job_id).path
        try:
            JobFolder(self._root, job_id).record()
        except NotFound:
            return False
        sync_folder(folder)  # the request that made it may have been killed before it did so
        sync_folder(folder.parent)
        return True

    def _prepare(self, folder: JobFolder, upload: SubmittedForm) -> _Prepared:
        """Check all that can be checked, and store the code.

        Raises:
            InvalidInput, Conflict: it can't be accepted; nothing is left of it.
            NoRoom: the volume is below its floor.
        """
        spec = upload.spec
        if problem := self._floor.problem(self._root):
            raise NoRoom(
                f"No job is accepted now: {problem}. Delete jobs, or let whoever runs the cluster make room "
                "(`parallelrun admin usage`)."
            )
        if isinstance(spec, PipelineSpec):
            return self._prepare_pipeline(folder, spec, upload)
        rule = self._checks.rule()
        with upload.reading.locating_problems():
            self._checks.check(spec, has_zip=upload.code is not None, rule=rule)
            check_output_is_free(folder, spec, self._registry)
            earlier = earlier_job(self._root, spec, rule) if spec.resume_from else None
            placed = self._placed(spec, Selection(self._computes), rule)
            document = spec.model_dump(mode="json") | placed
            return _Prepared(document, store_code(self._root, spec, upload.code, rule), earlier)

    def _prepare_pipeline(self, folder: JobFolder, spec: PipelineSpec, upload: SubmittedForm) -> _Prepared:
        with upload.reading.locating_problems():
            steps = leaf_steps(spec)
            if spec.resume_from:
                check_earlier_pipeline(self._root, spec.resume_from)
        problems = StepProblems(upload.reading)
        rule = self._checks.rule()
        selection, placed = Selection(self._computes), dict[tuple[str, ...], dict[str, Any]]()
        for step in steps:
            with problems.of(step.names):
                self._checks.check_step(step.checkable_spec(), has_zip=upload.code is not None)
            with problems.of(step.names):
                placed[step.names] = self._placed(step.spec, selection, rule)
        check_outputs_are_free(folder, steps, self._registry, problems)
        problems.check()
        snapshots = store_steps_code(self._root, steps, upload.code, problems, rule)
        document = with_steps(
            spec.model_dump(mode="json"),
            lambda names, step: {
                **step, "code": snapshots[names], "job": {**step["job"], **placed[names]}
            },
        )  # fmt: skip
        return _Prepared(document, code="", earlier=None)

    def _placed(self, spec: JobSpec, selection: Selection, rule: PathRule) -> dict[str, Any]:
        """The fields of a job's recorded spec that say on which nodes it runs, and that its code is whole. Raises
        InvalidInput."""
        placed = with_context_stored(self._root, rule, spec, selection.place(spec))
        return {**placed, **code_is_whole(spec)}

    def _create(
        self, folder: JobFolder, upload: SubmittedForm, prepared: _Prepared, traceparent: str, *, is_alone: bool
    ) -> Accepted:
        """Create the job's folder, with what is in it.

        Args:
            is_alone: no other request can be about to create this job, too.
        """
        job_id = folder.job_id
        span = SpanContext.parse(traceparent)
        named = msgspec.structs.replace(self._record(upload, prepared), traceparent=span.traceparent if span else "")
        values = {JOB_ID: upload.name} if upload.name else {}
        record = job_of(named, job_id, submitted=time.time(), values=values)
        try:
            if is_alone and prepared.earlier is None:
                folder.create(record)
            else:
                take_over_into = partial(take_over, prepared.earlier) if prepared.earlier is not None else None
                record = folder.create_with(record, take_over_into)
        except FileExistsError:
            return Accepted(job_id)  # the same upload, under the same key, was faster
        except BaseException:
            if is_alone and not folder.has_record:
                shutil.rmtree(folder.path, ignore_errors=True)
            raise
        taken_over = record.resumed.mini_batches if record.resumed else 0
        log.info(
            "job_accepted",
            job_id=job_id,
            code=prepared.code,
            from_zip=upload.code is not None,
            taken_over=taken_over,
        )
        failpoints.reach("api.accepted")
        return Accepted(job_id, record)

    def notes(self, reading: Reading, recorded: Mapping[str, Any]) -> list[str]:
        """The notes on a document that are true on this server.

        Args:
            recorded: its spec, with the compute that was selected.
        """
        submitted = reading.spec.model_dump(mode="json", exclude_unset=True)
        notes = true_notes(reading.notes, submitted, recorded, has_computes=bool(self._computes.names()))
        with suppress(*CONNECTION_ERRORS):
            notes += notes_on_size(recorded, self._computes, self._nodes)
        return list(dict.fromkeys(notes))  # of an endpoint's job, much was noted of its deployment already

    def _record(self, upload: SubmittedForm, prepared: _Prepared) -> JobRecord:
        return JobRecord(
            job_id="",
            submitted=0.0,
            code=prepared.code,
            spec=prepared.spec,
            notes=self.notes(upload.reading, prepared.spec),
            places=seen_places(self._checks.places),
            origins=_origins(upload),
            owner=CURRENT.get().owner,
        )


def _origins(upload: SubmittedForm) -> dict[str, str]:
    """Return where each setting was given."""
    reading = upload.reading
    origins = {name: reading.origins.get(name, f"{reading.default}/{name}") for name in upload.spec.model_fields_set}
    return {name: origin for name, origin in origins.items() if origin}
