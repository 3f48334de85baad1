"""A job's folder over its generations."""

from __future__ import annotations

from pathlib import Path

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult, Reopening
from parallelrun_core.ids import new_job_id
from parallelrun_core.layout import job_ids
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState


def result(state: JobState) -> JobResult:
    return JobResult(job_id="job_1", state=state, started=1.0, ended=2.0, progress=Progress())


def test_a_job_that_was_reopened_has_not_ended_before_it_ends_again(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path, "job_1")
    folder.create(JobRecord(job_id="job_1", submitted=1.0, code="c", spec={}))
    seen = [folder.has_ended]
    folder.conclude(result(JobState.FAILED))
    seen.append(folder.has_ended)
    folder.reopen(Reopening(generation=1, at=3.0, retry_failed=True))
    seen.append(folder.has_ended)
    folder.conclude(result(JobState.COMPLETED))
    seen.append(folder.has_ended)
    assert seen == [False, True, False, True]
    assert folder.result() == result(JobState.COMPLETED)


def test_jobs_are_listed_by_age_without_what_lies_about_beside_them(tmp_path: Path) -> None:
    assert job_ids(tmp_path) == []
    first, second = new_job_id(), new_job_id()
    for name in (second, first, f".adopting-{first}-0123", "job_short", "lost+found"):
        (tmp_path / "jobs" / name).mkdir(parents=True)
    assert job_ids(tmp_path) == sorted([first, second])
    folder = JobFolder(tmp_path, first)
    assert not folder.has_record
    folder.create(JobRecord(job_id=first, submitted=1.0, code="c", spec={}))
    assert folder.has_record
