"""The facts about jobs: read from their folders, and remembered from one sweep to the next.

A job that has ended is read again only when something was written into its folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.documents.schema import SCHEMA
from parallelrun_core.durable_files import replace_file
from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult
from parallelrun_core.layout import LOGS, PRIVATE_FILE, Layout, Logs, job_ids, listed
from parallelrun_core.retention.marks import Marks
from parallelrun_core.retention.policy import JobFacts
from parallelrun_core.retention.references import hashes_in, jobs_in, text_of
from parallelrun_core.wire.states import JobState

_MEMORY: Final = "measured.json"


class _Memory(msgspec.Struct, kw_only=True, frozen=True):
    schema: int = SCHEMA
    facts: tuple[str, ...] = ()
    """The names of the facts: a release that goes by others measures all jobs again."""
    jobs: list[JobFacts] = []


class Measured:
    """The facts about the jobs of a root folder.

    Args:
        folder: where they are remembered; what is lost there is measured again.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self._root: Final = root
        self._path: Final = folder / _MEMORY
        self._jobs: dict[str, JobFacts] | None = None

    def facts(self) -> list[JobFacts]:
        """Measure all jobs, oldest first; those that can't be read count as not ended."""
        if self._jobs is None:
            memory = _memory(self._path.parent)
            has_all = memory.facts == JobFacts.__struct_fields__
            self._jobs = {job.job_id: job for job in memory.jobs} if has_all else {}
        jobs = {}
        for job_id in job_ids(self._root):
            if (job := self._fact(job_id, self._jobs.get(job_id))) is not None:
                jobs[job_id] = job
        self._jobs = jobs
        return list(jobs.values())

    def remember(self) -> None:
        """Write down what was measured, for the next sweep."""
        memory = _Memory(
            facts=JobFacts.__struct_fields__, jobs=[job for job in (self._jobs or {}).values() if job.ended]
        )
        replace_file(self._path, msgspec.json.encode(memory), mode=PRIVATE_FILE)

    def _fact(self, job_id: str, earlier: JobFacts | None) -> JobFacts | None:
        folder = JobFolder(self._root, job_id)
        try:
            stamp = str(folder.path.stat().st_mtime_ns)
        except FileNotFoundError:
            return None
        if earlier is not None and earlier.ended and earlier.stamp == stamp:
            return earlier
        return facts_of(folder, stamp)


def remembered(folder: Path) -> list[JobFacts]:
    """Return the facts about jobs that have ended, as the last sweep has written them down; none if it hasn't.

    Args:
        folder: that of retention.
    """
    return _memory(folder).jobs


def _memory(folder: Path) -> _Memory:
    try:
        memory = msgspec.json.decode((folder / _MEMORY).read_bytes(), type=_Memory)
    except (OSError, msgspec.DecodeError):
        return _Memory()
    return memory if memory.schema == SCHEMA else _Memory()


def facts_of(folder: JobFolder, stamp: str = "") -> JobFacts:
    """Measure one job; one that can't be read counts as not ended."""
    records = list(_records(folder.layout))
    spec = text_of(folder.layout.record)
    code = hashes_in(spec).union(*map(hashes_in, records))
    steps = set[str]().union(*map(jobs_in, records))
    try:
        record, result = folder.record(), folder.result()
    except (NotFound, CorruptLog, NewerSchema, OSError):
        names = tuple(sorted((jobs_in(spec) | steps) - {folder.job_id}))
        return JobFacts(
            job_id=folder.job_id, unit=folder.job_id, submitted=0.0, ended=0.0, names=names, code=tuple(sorted(code)),
            stamp=stamp,
        )  # fmt: skip
    marks = Marks(folder)
    deleted, notice = marks.deleted, marks.notice
    return JobFacts(
        job_id=folder.job_id,
        unit=record.outermost,
        submitted=record.submitted,
        ended=result.ended if result is not None else 0.0,
        is_completed=result is not None and result.state is JobState.COMPLETED,
        bytes=size_of(folder.path),
        parts_bytes=sum(map(size_of, parts_of(folder, result))),
        logs_bytes=sum(map(size_of, live_logs_of(folder))),
        names=tuple(sorted((steps if result is not None else steps | jobs_in(spec)) - {folder.job_id})),
        code=tuple(sorted(code)),
        deleted=deleted.at or 1.0 if deleted else 0.0,
        noticed=notice.at or 1.0 if notice else 0.0,
        stamp=stamp,
    )


def parts_of(folder: JobFolder, result: JobResult | None) -> Iterator[Path]:
    """The folders of a job that only a resumed or retried one needs: rows as workers wrote them, and journals. None
    while the job's output may have to be put together from them."""
    if result is None or result.state is not JobState.COMPLETED:
        return
    layout = folder.layout
    yield from (layout.parts, layout.journals, layout.keys)
    yield from layout.all_of_grouping


def live_logs_of(folder: JobFolder) -> tuple[Path, ...]:
    """The folders with logs that people follow while a job runs. Reports, errors, metrics and the files that scripts
    leave in `logs` are not among them."""
    logs = Logs(folder.layout.path / LOGS)
    return (
        logs.sys / "perf", logs.sys / "node", logs.sys / "error", logs.stacks, logs.user / "stdout",
        logs.user / "stderr", logs.user / "entry_script_log",
    )  # fmt: skip


def size_of(path: Path | str) -> int:
    """Return the bytes of all files below a folder; 0 if it isn't there."""
    total = 0
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    total += size_of(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_size
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return total
    return total


def _records(layout: Layout) -> Iterator[bytes]:
    """The decisions about the steps of a pipeline."""
    for name in listed(layout.steps):
        yield text_of(layout.steps / name)
