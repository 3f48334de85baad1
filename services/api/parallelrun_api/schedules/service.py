"""Accepts schedules: all checks of their jobs are done, and their code is stored, before there is anything to fire."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from parallelrun_api.people.person import CURRENT, is_seen, seen_places
from parallelrun_api.submission.checks import PathChecks
from parallelrun_api.submission.key_claims import KeyClaims
from parallelrun_api.submission.submissions import Accepted, Submissions
from parallelrun_api.submission.upload import SubmittedForm
from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.computes.selection import computes_in
from parallelrun_core.errors import InvalidInput, NotFound
from parallelrun_core.folder.job_folder import JobFolder, job_folder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.ids import new_job_id
from parallelrun_core.intake.launching import claim_of
from parallelrun_core.intake.prepared import JOB_ID, TRIGGER_TIME, job_of
from parallelrun_core.names.assets import Names
from parallelrun_core.problems import Problems
from parallelrun_core.retention.marks import check_not_deleted
from parallelrun_core.schedules.document import ScheduleReading, read_schedule
from parallelrun_core.schedules.policy import FireOutcome
from parallelrun_core.schedules.records import FireRecord, Revision, rfc3339_of, stamp, utc_time
from parallelrun_core.schedules.store import ScheduleStore
from parallelrun_core.schedules.trigger import as_document
from parallelrun_core.service import telemetry
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.registry import BETWEEN_OUTPUTS, Registry

log = telemetry.logger()

_LIKE: Final = "/create_job"
_LABELS: Final = {"display_name": "name", "description": "description", "tags": "tags"}
_OF_ITS_RUN: Final = ("compute", "identity", "services", "settings")
_WITHOUT_EFFECT: Final = ("$schema", "experiment_name", "properties", *_OF_ITS_RUN)


class ScheduleService:
    """Accepts schedules, and what is asked of them. Safe to share between threads."""

    def __init__(
        self, root: Path, submissions: Submissions, checks: PathChecks, registry: Registry, *, names: Names | None
    ) -> None:
        self._root = root
        self._submissions = submissions
        self._checks = checks
        self._registry = registry
        self._names = names
        self._computes = ComputeCatalog(root)
        self._keys = KeyClaims(root)
        self.store = ScheduleStore(root, shows=is_seen)

    def put(self, name: str, document: object, code: IO[bytes] | None) -> tuple[Revision, bool]:
        """Define a schedule, or define it anew, durably; returns it, and whether it is new.

        Args:
            code: a zip of the job's code; None: the document names a folder, or a job that there is.

        Raises:
            InvalidInput: something is wrong with it, or with its job.
            Conflict: somebody else has just changed it, or its job would write what another one writes.
        """
        now = time.time()
        reading = read_schedule(document, created=utc_time(now), name=name, names=self._names)
        job = self._job(reading, code)
        last = self.store.find(name)
        job = msgspec.structs.replace(job, owner=last.owner) if last else job
        revision = Revision(
            number=last.number + 1 if last else 1,
            schedule_id=last.schedule_id if last else new_job_id(),
            made=last.made if last else now,
            at=now,
            is_enabled=last.is_enabled if last else True,
            trigger=as_document(reading.trigger),
            missed=reading.missed,
            may_overlap=reading.may_overlap,
            display_name=reading.display_name,
            description=reading.description,
            tags=reading.tags,
            job=job,
        )
        self.store.put(name, revision)
        log.info("schedule_defined", schedule=name, revision=revision.number)
        return revision, last is None

    def enable(self, name: str, *, is_enabled: bool) -> Revision:
        """Enable or disable a schedule. What was due while it was disabled is not made up.

        Raises:
            NotFound: there is none of this name.
            Conflict: somebody else has just changed it.
        """
        last = self.store.get(name)
        if last.is_enabled is is_enabled:
            return last
        revision = msgspec.structs.replace(last, number=last.number + 1, is_enabled=is_enabled, at=time.time())
        self.store.put(name, revision)
        return revision

    def remove(self, name: str) -> None:
        """Forget a schedule; its jobs stay. Raises NotFound."""
        self.store.remove(name)

    def make_now(self, name: str, key: str) -> Accepted:
        """Make a job of a schedule now, durably, whether it is due or not. It is not yet registered.

        Args:
            key: calling again with the same one gives the same job. Empty: each call gives another one.

        Raises:
            NotFound: there is no such schedule.
            KeyReused: the key was used for something else.
            QuotaExceeded: the person has as many jobs as they may have.
            RedisError: Redis is away; nothing has happened.
        """
        revision = self.store.get(name)
        job_id = new_job_id()
        if key:
            request_sha256 = hashlib.sha256(f"trigger\0{name}".encode()).hexdigest()
            job_id = self._keys.claim(key, request_sha256, job_id, now=self._registry.now())
        now = utc_time(int(time.time()))
        record = job_of(
            revision.job,
            job_id,
            submitted=time.time(),
            values={TRIGGER_TIME: stamp(now)},
            note=f"made by the schedule {name!r} because somebody asked for it",
        )
        folder = JobFolder(self._root, job_id)
        try:
            with self._submissions.reserved(job_id, record.owner):
                folder.create_with(record, None)
        except FileExistsError:  # by an earlier request with this key
            return Accepted(job_id)
        fire = FireRecord(
            due=rfc3339_of(now), at=time.time(), outcome=FireOutcome.MANUAL, revision=revision.number, job_id=job_id
        )
        self.store.fires(name).record_manual(fire, now)
        return Accepted(job_id)

    def _job(self, reading: ScheduleReading, code: IO[bytes] | None) -> JobRecord:
        """The job that is made each time, without its id."""
        if reading.job is None:
            if code is not None:
                raise InvalidInput.at(_LIKE, "it names a job that has its code already", "leave the zip out")
            return self._like(reading.like, reading.changes)
        job = self._submissions.prepare(SubmittedForm(reading=reading.job, code=code, sha256=""))
        with reading.job.locating_problems():
            self._check_output(job)
        return job

    def _check_output(self, job: JobRecord) -> None:
        """Refuse a file of rows that each job would write: nothing is ever overwritten."""
        for file in (claim_of(JobFolder(self._root, ""), job) or "").split(BETWEEN_OUTPUTS.decode()):
            if file and JOB_ID not in file and TRIGGER_TIME not in file:
                hint = "put ${{name}} into its path, or name none: each job has a folder of its own"
                raise InvalidInput.at("/output", f"each job would write the same file {file!r}", hint)

    def _like(self, name: str, changes: dict[str, Any]) -> JobRecord:
        """The job that there is, with some changes."""
        try:
            folder = job_folder(self._root, name)
            record = folder.record()
            if not CURRENT.get().may_see(record.owner):
                raise NotFound
            check_not_deleted(folder)
        except NotFound as error:
            raise InvalidInput.at(_LIKE, f"there is no job {name[:80]!r}", "its id, as in azureml:job_…") from error
        for compute in sorted(computes_in(record.spec)):
            if compute not in self._computes:
                hint = "define it again, or write the job itself below create_job"
                raise InvalidInput.at(_LIKE, f"its compute {compute!r} was deleted", hint)
        changed = {key: value for key, value in changes.items() if key not in _WITHOUT_EFFECT and value is not None}
        passed_over = [key for key in _OF_ITS_RUN if changes.get(key) is not None]
        prepared = msgspec.structs.replace(
            record,
            job_id="",
            submitted=0,
            resumed=None,
            parent=None,
            places=seen_places(self._checks.places),
            owner=CURRENT.get().owner,
            notes=[*record.notes, *(f"{_LIKE}/{key}: it stays as that job has it" for key in passed_over)],
        )
        if record.is_pipeline:
            if set(changed) - set(_LABELS):
                hint = "write the pipeline itself below create_job, with its new values"
                raise InvalidInput.at(_LIKE, "inputs and outputs of a pipeline that there is can't be changed", hint)
            labels = {_LABELS[key]: value for key, value in changed.items()}
            return msgspec.structs.replace(prepared, spec={**record.spec, **labels})
        spec = _changed(record, changed)
        self._checks.check(spec, has_zip=True)  # its code is in the store
        prepared = msgspec.structs.replace(prepared, spec=spec.model_dump(mode="json"))
        self._check_output(prepared)
        return prepared


def _changed(record: JobRecord, changes: dict[str, Any]) -> JobSpec:
    """The spec of a job with other inputs, outputs or labels.

    Raises:
        InvalidInput: with one problem for each wrong change.
    """
    spec = {**record.job_spec().model_dump(mode="json", exclude_unset=True), "code": "", "resume_from": ""}
    problems = Problems()
    for key, value in changes.items():
        if key in _LABELS:
            spec[_LABELS[key]] = value
        elif key in ("inputs", "outputs") and isinstance(value, dict):
            entries = dict(spec.get(key) or {})
            for name, change in value.items():
                if name not in entries:
                    listed = f"it has {', '.join(entries)}" if entries else "it has none"
                    problems.wrong(f"{_LIKE}/{key}/{name}", f"the job has none of this name among its {key}", listed)
                    continue
                old = entries[name] if isinstance(entries[name], dict) else {}
                entries[name] = {**old, **change} if isinstance(change, dict) else {**old, "path": change}
            spec[key] = entries
        else:
            hint = "inputs, outputs, display_name, description, tags and experiment_name can be"
            problems.wrong(f"{_LIKE}/{key}", "this can't be changed of a job that there is", hint)
    problems.check()
    return JobSpec.parse(spec)
