"""The names of a job's files, and which folders are jobs."""

from __future__ import annotations

from pathlib import Path

from parallelrun_core.folder.job_folder import JobFolder, recorded_jobs
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.ids import new_job_id
from parallelrun_core.layout import Layout, job_ids


def test_jobs_are_those_with_a_record_the_oldest_first(tmp_path: Path) -> None:
    assert (list(recorded_jobs(tmp_path)), job_ids(tmp_path)) == ([], [])
    ids = sorted(new_job_id() for _ in range(3))
    for job_id in reversed(ids):
        JobFolder(tmp_path, job_id).create(JobRecord(job_id=job_id, submitted=1.0, code="c", spec={}))
    JobFolder(tmp_path, ids[1]).layout.record.unlink()
    (tmp_path / "jobs" / f".adopting-{ids[0]}-0a").mkdir()
    (tmp_path / "jobs" / "notes").mkdir()
    assert job_ids(tmp_path) == ids
    assert [folder.job_id for folder in recorded_jobs(tmp_path)] == [ids[0], ids[2]]


def test_what_leaders_have_begun_to_group_is_found_by_input_and_term(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for number, term in ((0, 2), (0, 10), (1, 2)):
        layout.grouping(number, term).mkdir()
    layout.grouped(1).mkdir()
    layout.removed(layout.grouping(0, 1)).mkdir()
    assert list(layout.broken_off(0, until=9)) == [layout.grouping(0, 2)]
    assert list(layout.all_grouped) == [layout.grouped(1)]
    assert sorted(layout.all_of_grouping) == sorted(tmp_path.iterdir())
