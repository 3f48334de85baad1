"""Outputs are reused as long as they are what the step has made, wherever they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.ids import new_job_id
from parallelrun_core.pipelines.finished import finished_with
from parallelrun_core.pipelines.records import StepRecord
from parallelrun_core.pipelines.standing import StepStanding
from parallelrun_core.spec import PipelineSpec
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState, StepState
from parallelrun_master.pipelines import fingerprints
from parallelrun_master.pipelines.reuse import finished_before, offer_for_reuse, reuse_key


class Made:
    """A step whose job has written `a.txt` and `below/b.txt` to a folder that is its output, and has completed."""

    def __init__(self, tmp_path: Path) -> None:
        self.out = tmp_path / "out"
        outputs = {"made": {"type": "uri_folder", "path": str(self.out)}}
        steps = {"make": {"type": "command", "job": {"command": "true", "outputs": outputs}}}
        self.step = PipelineSpec.parse({"steps": steps}).steps["make"]
        spec = self.step.job_spec({}).model_dump(mode="json")
        self.job = JobRecord(job_id=new_job_id(), submitted=1.0, code="", spec=spec)
        self.folder = JobFolder(tmp_path / "root", self.job.job_id)
        self.folder.create(self.job)
        (self.out / "below").mkdir(parents=True)
        (self.out / "a.txt").write_text("one")
        (self.out / "below" / "b.txt").write_text("two")
        self.key = reuse_key(self.folder, self.step, self.job, {})
        self.folder.conclude(
            JobResult(job_id=self.job.job_id, state=JobState.COMPLETED, started=1.0, ended=2.0, progress=Progress())
        )

    def offer(self) -> None:
        record = StepRecord(step="make", generation=0, at=1.0, action="start", job=self.job.job_id, key=self.key)
        standing = StepStanding(state=StepState.COMPLETED, record=record, result=self.folder.result())
        offer_for_reuse(self.folder, self.step, standing, {})

    def is_reused(self) -> bool:
        return finished_before(self.folder, self.job, self.key) is not None


def overwritten(out: Path) -> None:
    (out / "a.txt").unlink()
    (out / "a.txt").write_text("another run")


def edited(out: Path) -> None:
    (out / "below" / "b.txt").write_text("owt")


def deleted(out: Path) -> None:
    (out / "below" / "b.txt").unlink()


def renamed(out: Path) -> None:
    (out / "below" / "b.txt").rename(out / "b.txt")


def added(out: Path) -> None:
    (out / "c.txt").touch()


def test_outputs_that_nobody_has_touched_are_reused_also_from_another_place(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.offer()
    made.offer()
    assert made.is_reused()
    told = msgspec.structs.replace(made.job, spec={**made.job.spec, "notify": {"url": "https://hook.example"}})
    assert reuse_key(made.folder, made.step, told, {}) == made.key
    moved = made.out.rename(tmp_path / "moved")
    assert not made.is_reused()
    made.out.symlink_to(moved)
    assert made.is_reused()


@pytest.mark.parametrize("change", [overwritten, edited, deleted, renamed, added])
def test_an_output_that_is_not_what_the_step_has_made_is_not_reused(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    made = Made(tmp_path)
    made.offer()
    assert made.is_reused()
    change(made.out)
    assert not made.is_reused()


def test_an_output_of_too_many_files_to_compare_is_not_reused(tmp_path: Path) -> None:
    made = Made(tmp_path)
    with patch.object(fingerprints, "_MOST_FILES", 1):
        made.offer()
    assert not made.is_reused()


def test_rows_that_somebody_has_replaced_before_they_were_compared_are_not_reused(tmp_path: Path) -> None:
    made = Made(tmp_path)
    result = made.folder.result()
    assert result is not None
    rows = Path(made.folder.output_file(made.job.job_spec()))
    rows.parent.mkdir(parents=True, exist_ok=True)
    rows.write_text("one")
    record = StepRecord(step="make", generation=0, at=1.0, action="start", job=made.job.job_id, key=made.key)
    for size, is_offered in [(4, False), (3, True)]:
        replaced = msgspec.structs.replace(result, output=str(rows), output_bytes=size)
        standing = StepStanding(state=StepState.COMPLETED, record=record, result=replaced)
        offer_for_reuse(made.folder, made.step, standing, {})
        assert (len(list(finished_with(made.folder.root, made.key))) == 1) is is_offered
