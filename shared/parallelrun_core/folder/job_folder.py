"""The job folder: the whole truth about one job, on the volume that every node shares.

A job that was accepted has its `job.json`. The folders come with its leader (`Layout.make_folders`), before any node
works for it, and `logs` and `keys` with what is first put there: each costs an API as much as a tenth of what it does
for a job.

jobs/<job id>/
    job.json                 what was submitted; written once
    manifest.<term>          the items of every mini-batch                (manifest.py)
    decisions.<term>         the one outcome of every mini-batch          (decisions.py)
    retries.<term>           tries that failed and were followed by another; for counts only
    costs.<term>             what was spent on each node
    journals/<session>       an agent's candidates, before the fence      (record_log.py)
    keys/<session>           seals what the session reports on Redis      (session_keys.py)
    parts/<session>.<process>    rows, as the worker wrote them
    outputs/<file>           the result, whole or absent
    logs/…                   for people; named as in the reference
    result.json              how it ended; written once
    reopened.<generation>.json   a resume or retry by the user; result.<generation>.json: how that ended
    cancel.<generation>.json     the user's request to cancel this generation
    steps/<step>.<generation>.json   of a pipeline: what was decided about a step (pipelines/records.py)
    tags.json                its tags, once somebody has changed them (tags.py)
    archived.json, deleted.json, notice.json, stripped.json    what becomes of it (retention/marks.py)
code/<sha256>/               snapshots of the users' code, shared between jobs
reuse/<key>/<job id>.<generation>.json    steps that have completed, by what they were made of (pipelines/finished.py)
keys/<date>/<sha256>         which job an idempotency key stands for      (api/submission/key_claims.py)
retention/       the rules, what sweeps remember, and a lock    (retention/)
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.documents.schema import decode, encode
from parallelrun_core.durable_files import sync_folder, write_new, write_once
from parallelrun_core.errors import Conflict, CorruptLog, NotFound
from parallelrun_core.folder.records import CancelRequest, JobRecord, JobResult, Reopening, Resumed
from parallelrun_core.ids import checked_job_id
from parallelrun_core.layout import (
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    Layout,
    code_store,
    job_ids,
    jobs_of,
    make_store,
)
from parallelrun_core.service import failpoints
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.location import below, is_url
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.untrusted.paths import within

_BESIDE: Final = ".creating-"


@dataclass(frozen=True, slots=True)
class JobFolder:
    root: Path
    job_id: str
    path: Path = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", jobs_of(self.root) / self.job_id)

    @property
    def layout(self) -> Layout:
        return Layout(self.path)

    @property
    def parts(self) -> Path:
        return self.layout.parts

    @property
    def journals(self) -> Path:
        return self.layout.journals

    @property
    def keys(self) -> Path:
        return self.layout.keys

    @property
    def logs(self) -> Path:
        return self.layout.logs

    @property
    def outputs(self) -> Path:
        return self.layout.outputs

    def output_file(self, spec: JobSpec) -> str:
        """The file, or the URL of the object, in which the rows of an append_row job are published."""
        if not spec.append_row_to:
            return below(self.outputs_of(spec), spec.append_row_file_name)
        path = self.output_paths(spec)[spec.append_row_to]
        is_file = spec.outputs[spec.append_row_to].type == "uri_file"
        return path if is_file else below(path, spec.append_row_file_name)

    def named_output(self, spec: JobSpec) -> str | None:
        """The one name of that place, if the spec names it: another job may name it, too."""
        if not spec.writes_rows or not (spec.output or spec.append_row_to):
            return None  # it is in the job's own folder
        target = self.output_file(spec)
        if not is_url(target) and within(Path(target), [jobs_of(self.root)]):
            return None
        return storage_of(target).identity(target)

    def outputs_of(self, spec: JobSpec) -> str:
        """The folder of the job's outputs, except those with a path of their own."""
        return spec.output or str(self.outputs)

    def output_paths(self, spec: JobSpec) -> dict[str, str]:
        """The path, or the URL, of each of the job's named outputs."""
        return {
            name: output.path or below(self.outputs_of(spec), output.file_name or name)
            for name, output in spec.outputs.items()
        }

    def path_rule(self, record: JobRecord) -> PathRule | None:
        """Return what paths this job may use, which includes its own `outputs`; None if an earlier release has accepted
        it, by what was the rule then.
        """
        if record.places is None:
            return None
        return PathRule(self.root, record.places, self.job_id, submitted=record.submitted)

    def code(self, record: JobRecord) -> Path:
        return code_store(self.root) / record.code

    def create(self, record: JobRecord) -> None:
        """Create the folder and its `job.json`, durably.

        Raises:
            FileExistsError: the job exists already.
        """
        try:
            _make_folder(self.path)
            write_once(self.layout.record, encode(record), mode=PRIVATE_FILE)
        finally:
            sync_folder(self.path.parent)  # also when it is there: who made it may have been killed before it did so

    def create_with(self, record: JobRecord, take_over: Callable[[Path], Resumed] | None) -> JobRecord:
        """Create the folder of a job that others may be creating, too, or that takes over work of another job.

        All of it appears at once. A process that dies before leaves a folder beside it, which `abandoned` finds.

        Args:
            take_over: puts that work into a folder.

        Returns:
            The record, with what was taken over.

        Raises:
            FileExistsError: the job exists already.
        """
        beside = self.path.with_name(f"{_BESIDE}{self.job_id}-{secrets.token_hex(6)}")
        try:
            _make_folder(beside)
            if take_over is not None:
                Layout(beside).make_folders()
                record = msgspec.structs.replace(record, resumed=take_over(beside))
            write_new(Layout(beside).record, encode(record), mode=PRIVATE_FILE)
            sync_folder(beside)
            failpoints.reach("create.before_rename")
            try:
                os.rename(beside, self.path)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
                raise FileExistsError(self.path) from error
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        finally:
            sync_folder(self.path.parent)
        return record

    def record(self) -> JobRecord:
        """Return what was submitted.

        Raises:
            NotFound: there is no such job.
            NewerSchema: a newer release has written it.
            CorruptLog: its `job.json` is damaged.
        """
        try:
            return decode((path := self.layout.record).read_bytes(), JobRecord, path)
        except FileNotFoundError as error:
            is_there = self.path.is_dir()  # it is being created, or damaged
            why = f": its folder has no file {self.layout.record}" if is_there else ""
            raise NotFound(f"There is no job {self.job_id!r}{why}.") from error

    @property
    def has_record(self) -> bool:
        """Return whether the job was accepted: a folder without its `job.json` is being made, or was left half-made."""
        return self.layout.record.exists()

    def generation(self) -> int:
        """Return how often the job was reopened."""
        return self.layout.generation()

    def reopenings(self) -> list[Reopening]:
        """The reopenings in order, the one of the current generation last.

        Raises:
            CorruptLog: one is missing, or can't be read.
        """
        paths = [self.layout.reopening(generation) for generation in range(1, self.generation() + 1)]
        try:
            return [decode(path.read_bytes(), Reopening, path) for path in paths]
        except FileNotFoundError as error:
            raise CorruptLog(f"{error.filename} is missing") from error

    def reopen(self, reopening: Reopening) -> None:
        """Begin a new generation, durably.

        Raises:
            Conflict: another request has just begun it.
        """
        try:
            write_once(self.layout.reopening(reopening.generation), encode(reopening), mode=PRIVATE_FILE)
        except FileExistsError as error:
            raise Conflict(f"Job {self.job_id} has been reopened already.") from error

    def record_cancel(self, generation: int) -> None:
        """Record durably that the user wants this generation canceled. Again, it changes nothing."""
        request = CancelRequest(generation=generation, at=time.time())
        with suppress(FileExistsError):
            write_once(self.layout.cancel(generation), encode(request), mode=PRIVATE_FILE)

    def has_cancel(self, generation: int) -> bool:
        """Return whether the user wants this generation canceled; if it has ended otherwise, that came too late."""
        return self.layout.cancel(generation).exists()

    def withdraw_cancel(self, generation: int) -> None:
        """The request to cancel was refused, or the user wants the job to go on after all."""
        self.layout.cancel(generation).unlink(missing_ok=True)

    def _result_file(self, generation: int | None = None) -> Path:
        return self.layout.result(self.generation() if generation is None else generation)

    def result(self) -> JobResult | None:
        """Return how the job ended, or None while it hasn't, or has been reopened."""
        try:
            return decode((path := self._result_file()).read_bytes(), JobResult, path)
        except FileNotFoundError:
            return None

    def published(self) -> set[str]:
        """The sha256 of each output that this job has ended with, in any of its generations, as far as one can read."""
        paths = set()
        for path in self.layout.results:
            with suppress(CorruptLog):
                paths.add(decode(path.read_bytes(), JobResult, path).output_sha256)
        return paths

    @property
    def has_ended(self) -> bool:
        """Return whether a result is recorded, and the job hasn't been reopened since."""
        return self._result_file().exists()

    def conclude(self, result: JobResult, *, generation: int | None = None) -> JobResult:
        """Record how the job ended, durably; returns the first result if it was recorded before.

        Args:
            generation: the one that ended, by default the current one. A caller that may be late must name it.
        """
        try:
            write_once(self._result_file(generation), encode(result), mode=PRIVATE_FILE)
        except FileExistsError:
            return self.result() or result
        return result


def abandoned(root: Path) -> Iterator[Path]:
    """Folders of jobs that were never whole; some may still be about to be."""
    return jobs_of(root).glob(f"{_BESIDE}*")


def recorded_jobs(root: Path) -> Iterator[JobFolder]:
    """The folders of all jobs that were accepted, oldest first; those that are being created are passed over."""
    for job_id in job_ids(root):
        folder = JobFolder(root, job_id)
        if folder.has_record:
            yield folder


def job_folder(root: Path, job_id: str) -> JobFolder:
    """The folder of a job whose id came from outside.

    Raises:
        NotFound: this can't be a job's id.
    """
    return JobFolder(root, checked_job_id(job_id))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    except FileNotFoundError:  # the first job
        make_store(folder.parent)
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
